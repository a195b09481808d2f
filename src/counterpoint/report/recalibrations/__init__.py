"""What recalibrations make of a run, as words, tables and charts."""
