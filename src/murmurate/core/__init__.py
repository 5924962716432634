"""Types that all other modules share: trips, spaces, guarantees, the ledger, scores."""
