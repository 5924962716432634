"""What a release is good for and what it gives away: evaluate, attack, verify, list, and studies of many settings."""
