"""What an attacker can still learn from a release."""
