"""Studies that others ran: a reader's own table of episodes, made into registers by a mapping."""
