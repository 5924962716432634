"""Record what each population has spent and may spend, and who set it."""

from murmurate.core.ledger.accounts import Amount, Limit, Spent
from murmurate.core.ledger.ledger import Entry, Ledger, Verified
from murmurate.core.ledger.plan import Plan, PlanLine
from murmurate.core.ledger.state import Debit

__all__ = ["Amount", "Debit", "Entry", "Ledger", "Limit", "Plan", "PlanLine", "Spent", "Verified"]
