"""The networks of DP-Loc: ends by a variational autoencoder, moves by a next-cell network, and their budget."""
