"""Planning: a campaign's wishes become an immutable, digested plan."""
