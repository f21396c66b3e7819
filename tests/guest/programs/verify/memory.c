/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory of an rdma_verify run: layout, contents, comparison. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "verify.h"

/* The contents of regions that are larger than their memory */
#define CHUNK (64ull << 20)

/*
 * The next piece for queue pair @q. In regions with more addresses than memory
 * the first queue pair is in the first chunk and the last one in the last. No
 * two queue pairs have the same place in their chunks.
 */
static void *carve(size_t *from, struct ibv_mr *mr, uint32_t q, size_t size)
{
    size_t at = *from;

    *from += (size + 63) & ~(size_t)63;
    if (mr->length > CHUNK && par.qps > 1) {
        at += (mr->length / CHUNK - 1) * q / (par.qps - 1) * CHUNK;
    }
    return (unsigned char *)mr->addr + at;
}

/*
 * Addresses at which one chunk of memory repeats. It has huge pages, as the
 * kernel takes a while to pin a million small ones.
 */
static void *map_often(size_t size)
{
    int fd = memfd_create("rdma_verify", MFD_HUGETLB);
    unsigned char *at;
    size_t done;

    at = mmap(NULL, size + CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
              0);
    if (fd < 0 || ftruncate(fd, CHUNK) || at == MAP_FAILED) {
        fail("%zu bytes of addresses: %s", size, strerror(errno));
    }
    at += -(uintptr_t)at % CHUNK;
    for (done = 0; done < size; done += CHUNK) {
        if (mmap(at + done, CHUNK, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            fail("mmap: %s", strerror(errno));
        }
    }
    close(fd);
    return at;
}

static struct ibv_mr *region(struct ibv_pd *pd, size_t size, int access)
{
    void *memory = NULL;
    struct ibv_mr *mr;

    if (par.spread) {
        if (size > CHUNK) {
            fail("too much for regions of little memory");
        }
        size = par.spread / (CHUNK >> 20) * CHUNK;
        memory = map_often(size);
    } else {
        if (posix_memalign(&memory, 4096, size)) {
            fail("out of memory");
        }
        memset(memory, 0, size);
    }
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
    size_t send = 0, land = 0, expose = 0;
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
    for (q = 0; q < par.qps; q++) {
        pairs[q].buf = (struct buffers) {
            .tx = carve(&send, send_mr, q, tx_stride * par.count),
            .rx = carve(&land, land_mr, q, rx_stride * par.count),
            .back = carve(&land, land_mr, q, tx_stride * par.count),
            .results = carve(&land, land_mr, q, par.count * sizeof(uint64_t)),
            .target = carve(&expose, expose_mr, q, tx_stride * par.count),
            .source = carve(&expose, expose_mr, q, tx_stride * par.count),
            .words = carve(&expose, expose_mr, q, sizeof(struct words)),
        };
    }
    mine.base = (uintptr_t)expose_mr->addr;
    mine.rkey = expose_mr->rkey;
}

/* Both ends have the same layout: find the peer's address by the offset. */
uint64_t peer_address(const void *at)
{
    return theirs.base + ((const unsigned char *)at -
                          (const unsigned char *)expose_mr->addr);
}

/* The contents of memory before the round, or with done, after it. */
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
        /* The header's contents are not part of the test. */
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
