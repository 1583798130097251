"""Where jobs are done: in this process, in others on this machine, or by Ray on many."""
