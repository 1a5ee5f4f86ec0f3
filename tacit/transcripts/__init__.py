"""Conversations: their format on disk, capture and verification.

A message is acknowledged when its bytes are synced to the transcript, which needs neither git nor index. A
transcript has one writer at a time, is finalized once and never changes afterwards; its hash proves that.
After a crash, open transcripts are found and finalized by the next start. Start reading at `format.py`,
then `writer.py`.
"""
