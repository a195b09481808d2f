"""What counterpoint found out about a run, as typed values, and the JSON files that hold them.

Nothing here needs torch or numpy, so that whatever only reads results starts at once.
"""
