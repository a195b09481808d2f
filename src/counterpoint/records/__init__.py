"""What counterpoint found out about a run, as typed values, and the JSON files that hold them.

Nothing here needs torch or numpy, so that commands that only read results start fast.
"""
