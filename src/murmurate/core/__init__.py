"""The nouns: trips, spaces, guarantees, the ledger, releases, scores."""
