/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of an rdma_verify run: layout, contents, comparison. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rdma_verify.h"

static void *carve(unsigned char **from, size_t size)
{
    unsigned char *at = *from;

    *from += (size + 63) & ~(size_t)63;
    return at;
}

static struct ibv_mr *region(struct ibv_pd *pd, size_t size, int access)
{
    void *memory = NULL;
    struct ibv_mr *mr;

    if (posix_memalign(&memory, 4096, size)) {
        fail("out of memory");
    }
    memset(memory, 0, size);
    mr = ibv_reg_mr(pd, memory, size, access);
    if (!mr) {
        fail("ibv_reg_mr of %zu bytes: %s", size, strerror(errno));
    }
    return mr;
}

void make_memory(struct ibv_pd *pd)
{
    size_t round64 = 64;
    size_t tx, rx, results;
    unsigned char *send, *land, *expose;
    int remote = par.type == IBV_QPT_UD ? 0 : IBV_ACCESS_REMOTE_WRITE;
    uint32_t q;

    if (par.type == IBV_QPT_RC) {
        remote |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    tx_stride = par.size + GUARD;
    rx_stride = par.size + grh() + GUARD;
    tx = tx_stride * par.count + round64;
    rx = rx_stride * par.count + round64;
    results = par.count * sizeof(uint64_t) + round64;
    send_mr = region(pd, par.qps * tx, 0);
    land_mr = region(pd, par.qps * (rx + tx + results), IBV_ACCESS_LOCAL_WRITE);
    expose_mr = region(pd, par.qps * (2 * tx + round64),
                       IBV_ACCESS_LOCAL_WRITE | remote);
    send = send_mr->addr;
    land = land_mr->addr;
    expose = expose_mr->addr;
    for (q = 0; q < par.qps; q++) {
        pairs[q].buf = (struct buffers) {
            .tx = carve(&send, tx_stride * par.count),
            .rx = carve(&land, rx_stride * par.count),
            .back = carve(&land, tx_stride * par.count),
            .results = carve(&land, par.count * sizeof(uint64_t)),
            .target = carve(&expose, tx_stride * par.count),
            .source = carve(&expose, tx_stride * par.count),
            .words = carve(&expose, sizeof(struct words)),
        };
    }
    mine.base = (uintptr_t)expose_mr->addr;
    mine.rkey = expose_mr->rkey;
}

/* Both ends lay their memory out alike: find the peer's by the distance. */
uint64_t peer_address(const void *at)
{
    return theirs.base + ((const unsigned char *)at -
                          (const unsigned char *)expose_mr->addr);
}

/* What the memory holds before (or, with done, after) the round. */
static void paint(struct buffers *b, uint32_t q, bool done)
{
    struct words ours = words_of(&par, !me, now_round, q);
    struct words far = words_of(&par, me, now_round, q);
    struct plan p;
    uint32_t i, k = 0;

    memset(b->tx, POISON, tx_stride * par.count);
    memset(b->rx, POISON, rx_stride * par.count);
    memset(b->back, POISON, tx_stride * par.count);
    memset(b->results, POISON, par.count * sizeof(uint64_t));
    memset(b->target, POISON, tx_stride * par.count);
    memset(b->source, POISON, tx_stride * par.count);
    for (i = 0; i < par.count; i++) {
        p = plan(me, q, i);
        if (p.op <= OP_WRITE_IMM) {
            fill(b->tx + i * tx_stride, p.len, p.key);
        } else if (p.op == OP_READ && done) {
            fill(b->back + i * tx_stride, p.len, p.key);
        } else if (p.op == OP_FADD || p.op == OP_CAS) {
            if (done) {
                b->results[i] = words_step(&far, &p);
            }
        }
        p = plan(!me, q, i);
        if (p.op == OP_READ) {
            fill(b->source + i * tx_stride, p.len, p.key);
        } else if (done && (p.op == OP_WRITE || p.op == OP_WRITE_IMM)) {
            fill(b->target + i * tx_stride, p.len, p.key);
        } else if (done && (p.op == OP_SEND || p.op == OP_SEND_IMM)) {
            fill(b->rx + k * rx_stride + grh(), p.len, p.key);
        } else if (done && (p.op == OP_FADD || p.op == OP_CAS)) {
            words_step(&ours, &p);
        }
        k += p.takes_receive;
    }
    *b->words = ours;
}

void compare(const char *what, const void *is, const void *must,
                    size_t size, size_t stride, uint32_t q)
{
    const unsigned char *a = is, *b = must;
    size_t i = 0;

    if (!memcmp(a, b, size)) {
        return;
    }
    while (a[i] == b[i]) {
        i++;
    }
    fail("qp %u: %s %zu byte %zu is 0x%02x, must be 0x%02x", q, what,
         i / stride, i % stride, a[i], b[i]);
}

void prepare(uint32_t q)
{
    paint(&pairs[q].buf, q, false);
}

void verify(uint32_t q)
{
    static struct buffers image;
    struct buffers *b = &pairs[q].buf;
    size_t tx = tx_stride * par.count, rx = rx_stride * par.count;
    uint32_t k;

    if (!image.tx) {
        image = (struct buffers) {
            .tx = malloc(tx), .rx = malloc(rx), .back = malloc(tx),
            .results = malloc(par.count * sizeof(uint64_t)),
            .target = malloc(tx), .source = malloc(tx),
            .words = malloc(sizeof(struct words)),
        };
    }
    paint(&image, q, true);
    for (k = 0; k < par.count && grh(); k++) {
        /* The header's contents are the transport's business. */
        memset(b->rx + k * rx_stride, POISON, grh());
    }
    if (!par.lossy) {
        compare("receive buffer", b->rx, image.rx, rx, rx_stride, q);
        compare("written buffer", b->target, image.target, tx, tx_stride, q);
    }
    compare("send buffer", b->tx, image.tx, tx, tx_stride, q);
    compare("read result", b->back, image.back, tx, tx_stride, q);
    compare("atomic result", b->results, image.results,
            par.count * sizeof(uint64_t), sizeof(uint64_t), q);
    compare("readable buffer", b->source, image.source, tx, tx_stride, q);
    compare("atomic word", b->words, image.words, sizeof(struct words),
            sizeof(uint64_t), q);
}
