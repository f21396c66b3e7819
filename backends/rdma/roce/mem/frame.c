/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames to transmit: headers, pieces of guest memory, trailer.
 */
#include <glib.h>
#include "mem/mem.h"

/*
 * The most pieces of headers and payload; the last one of the array is for the
 * trailer.
 */
#define MAX_PIECES (ROCE_TX_MAX_IOV - 1)

void roce_frame_unmap(RoceEngine *e, RoceTxFrame *frame)
{
    while (frame->nmaps) {
        frame->nmaps--;
        e->ops.unmap(e->opaque, frame->maps[frame->nmaps].host,
                     frame->maps[frame->nmaps].len, false, 0);
    }
}

static void add_piece(RoceTxFrame *frame, void *data, uint32_t len)
{
    frame->iov[frame->iovcnt].iov_base = data;
    frame->iov[frame->iovcnt].iov_len = len;
    frame->iovcnt++;
    frame->size += len;
}

void roce_frame_copy(RoceTxFrame *frame, const void *data, uint32_t len)
{
    if (len) {
        memcpy(frame->bounce, data, len);
        add_piece(frame, frame->bounce, len);
    }
}

/* Copy all pieces of payload into one, since the frame has no room for more. */
static void frame_bounce(RoceEngine *e, RoceTxFrame *frame)
{
    size_t len = 0;
    unsigned i;

    /* The first piece of payload may be in the bounce buffer already. */
    for (i = 1; i < frame->iovcnt; i++) {
        g_assert(frame->iov[i].iov_len <= sizeof(frame->bounce) - len);
        if (frame->iov[i].iov_base != frame->bounce) {
            memcpy(frame->bounce + len, frame->iov[i].iov_base,
                   frame->iov[i].iov_len);
        }
        len += frame->iov[i].iov_len;
    }
    roce_frame_unmap(e, frame);
    frame->iovcnt = 1;
    frame->size = 0;
    add_piece(frame, frame->bounce, len);
}

bool roce_frame_map(RoceEngine *e, RoceTxFrame *frame, const RoceMr *mr,
                    uint64_t addr, uint32_t len)
{
    while (len) {
        uint64_t n = len;
        uint64_t dma = roce_mr_dma(mr, addr, &n);
        void *host;

        if (frame->iovcnt == MAX_PIECES) {
            frame_bounce(e, frame);
        }
        host = e->ops.map(e->opaque, dma, &n, false);
        if (!host) {
            return false;
        }
        frame->maps[frame->nmaps].host = host;
        frame->maps[frame->nmaps].len = n;
        frame->nmaps++;
        add_piece(frame, host, n);
        addr += n;
        len -= n;
    }
    return true;
}

void roce_frame_headers(RoceTx *tx)
{
    RoceTxFrame *frame = tx->frame;

    frame->iov[0].iov_base = frame->hdr;
    frame->iov[0].iov_len =
        tx->template ? roce_build_next(frame->hdr, tx->template, tx->path,
                                       &tx->bth, tx->len)
                     : roce_build(frame->hdr, tx->path, &tx->bth, tx->len);
    frame->size += frame->iov[0].iov_len;
}

void roce_frame_trailer(RoceEngine *e, RoceTx *tx)
{
    RoceTxFrame *frame = tx->frame;
    struct iovec *last = &frame->iov[frame->iovcnt];
    const struct iovec *payload = frame->iov + 1;
    size_t hdr_len = frame->iov[0].iov_len;
    unsigned n = frame->iovcnt - 1;

    last->iov_base = frame->trailer;
    frame->checked = !e->ops.unchecked ||
                     !e->ops.unchecked(e->opaque, tx->path->dmac);
    if (frame->checked && tx->template) {
        last->iov_len = roce_icrc_trailer_next(frame->hdr, hdr_len,
                                               tx->template, payload, n,
                                               frame->trailer);
    } else if (frame->checked) {
        last->iov_len = roce_icrc_trailer(frame->hdr, hdr_len,
                                          tx->path->is_ipv4, payload, n,
                                          frame->trailer);
    } else {
        last->iov_len = roce_pad(tx->len) + ROCE_ICRC_LEN;
        memset(frame->trailer, 0, last->iov_len);
    }
    frame->iovcnt++;
    frame->size += last->iov_len;
}

void roce_tx_undo(RoceEngine *e, RoceTx *tx)
{
    roce_frame_unmap(e, tx->frame);
    roce_tx_begin(tx, tx->bth.dqpn);
}
