# SPDX-License-Identifier: GPL-2.0-or-later
"""librpma: a program that writes, flushes and reads what a region of the other
guest holds; its atomic writes are WRITEs of 8 bytes."""
from lab import librpma

PORT = 7204


def test_write_flush_and_read(bench):
    result = librpma.verify(bench, PORT)
    assert result.ok, str(result)
    for side in (result.client, result.server):
        assert 'rpma_verify: fine' in side.out, str(result)
