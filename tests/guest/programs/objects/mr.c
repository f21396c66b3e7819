/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory regions: large ones, odd ones, and reregistration */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "objects.h"

#define MIB (1ull << 20)
#define PIECE 10000
#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
                    IBV_ACCESS_REMOTE_READ)

static uint64_t mib(char **args)
{
    if (!args[0] || !atoll(args[0])) {
        fail("how many MiB?");
    }
    return atoll(args[0]) * MIB;
}

/* Write and read a piece of memory, whose address for peers is addr. */
static void check(struct pair *p, struct memory *mine, uint8_t *at,
                  uint64_t addr, uint32_t rkey, uint8_t seed)
{
    fill(mine->at, PIECE, seed);
    must_end(rdma(p, IBV_WR_RDMA_WRITE, mine, PIECE, addr, rkey),
             IBV_WC_SUCCESS, "a write");
    if (!filled(at, PIECE, seed)) {
        fail("the write to 0x%lx is not there", (long)addr);
    }
    fill(at, PIECE, seed + 1);
    must_end(rdma(p, IBV_WR_RDMA_READ, mine, PIECE, addr, rkey),
             IBV_WC_SUCCESS, "a read");
    if (!filled(mine->at, PIECE, seed + 1)) {
        fail("the read of 0x%lx is damaged", (long)addr);
    }
}

static void check_refused(struct pair *p, struct memory *mine, uint64_t addr,
                          uint32_t rkey, const char *what)
{
    must_end(rdma(p, IBV_WR_RDMA_WRITE, mine, 1, addr, rkey),
             IBV_WC_REM_ACCESS_ERR, what);
    reconnect(p);
}

/* A range of addresses larger than its memory, which repeats in it */
static uint8_t *map_often(uint64_t size)
{
    uint64_t chunk = 64 * MIB, done;
    int fd = memfd_create("region", 0);
    uint8_t *at;

    at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fd < 0 || ftruncate(fd, chunk) || at == MAP_FAILED) {
        fail("no memory");
    }
    for (done = 0; done < size; done += chunk) {
        if (mmap(at + done, chunk, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            fail("mmap: %s", strerror(errno));
        }
    }
    close(fd);
    return at;
}

void mr_large(char **args)
{
    uint64_t size = mib(args);
    uint8_t *at = map_often(size);
    struct memory mine = new_memory(PIECE, IBV_ACCESS_LOCAL_WRITE);
    struct pair p = new_pair(NULL);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, at, size, ALL_RIGHTS);
    uint64_t off;

    if (!mr) {
        fail("ibv_reg_mr: %s", strerror(errno));
    }
    for (off = 0; off < size - PIECE; off += 509 * MIB + 1357) {
        check(&p, &mine, at + off, (uintptr_t)at + off, mr->rkey, off / MIB);
    }
    off = size - PIECE;
    check(&p, &mine, at + off, (uintptr_t)at + off, mr->rkey, 77);
    check_refused(&p, &mine, (uintptr_t)at + size, mr->rkey,
                  "a write beyond the end");
    check_refused(&p, &mine, (uintptr_t)at - 1, mr->rkey,
                  "a write before the beginning");
    if (ibv_dereg_mr(mr)) {
        fail("ibv_dereg_mr failed");
    }
    free_pair(&p);
    free_memory(&mine);
}

static uint8_t *map_pages(uint64_t size, const char *kind)
{
    int huge = !strcmp(kind, "hugetlb") ? MAP_HUGETLB : 0;
    uint8_t *at = mmap(NULL, size + 2 * MIB, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | huge, -1, 0);

    if (at == MAP_FAILED) {
        fail("mmap: %s", strerror(errno));
    }
    at += -(uintptr_t)at % (2 * MIB);
    if (!huge) {
        madvise(at, size, strcmp(kind, "huge") ? MADV_NOHUGEPAGE
                                               : MADV_HUGEPAGE);
    }
    memset(at, 1, size);
    return at;
}

/* SIZE in MiB, KIND of pages: small, huge or hugetlb */
void mr_time(char **args)
{
    uint64_t size = mib(args);
    uint8_t *at = map_pages(size, args[1] ? args[1] : "small");
    double start, registered, best = 1e9;
    struct ibv_mr *mr;
    int i;

    for (i = 0; i < 3; i++) {
        start = now();
        mr = ibv_reg_mr(dev.pd, at, size, ALL_RIGHTS);
        registered = now();
        if (!mr || ibv_dereg_mr(mr)) {
            fail("cannot register: %s", strerror(errno));
        }
        printf("registered in %.2f ms, deregistered in %.2f ms\n",
               (registered - start) * 1e3, (now() - registered) * 1e3);
        best = registered - start < best ? registered - start : best;
    }
    printf("best: %.2f ms\n", best * 1e3);
}

/* Sizes and starts that are not whole pages, with other addresses for peers */
void mr_iova(char **args)
{
    static const uint64_t from[] = { 0, 1, 4095, 4096, 300000, 2 * MIB - 1 };
    static const uint64_t moved[] = {
        0, 4096, 65536, 2 * MIB, 1ull << 40, 0x123456789000,
    };
    struct memory mine = new_memory(PIECE, IBV_ACCESS_LOCAL_WRITE);
    struct pair p = new_pair(NULL);
    size_t i, j, k;

    (void)args;
    for (k = 0; k < 2; k++) {
        uint8_t *at = map_pages(8 * MIB, k ? "huge" : "small");

        for (i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
            for (j = 0; j < sizeof(moved) / sizeof(moved[0]); j++) {
                uint8_t *start = at + from[i];
                uint64_t addr = (uintptr_t)start + moved[j];
                size_t len = 5 * MIB + 7 * i + j;
                struct ibv_mr *mr = ibv_reg_mr_iova(dev.pd, start, len, addr,
                                                    ALL_RIGHTS);

                if (!mr) {
                    fail("%zu bytes at %p as 0x%lx: %s", len, start,
                         (long)addr, strerror(errno));
                }
                check(&p, &mine, start, addr, mr->rkey, i);
                check(&p, &mine, start + 3 * MIB + 5, addr + 3 * MIB + 5,
                      mr->rkey, j);
                check(&p, &mine, start + len - PIECE, addr + len - PIECE,
                      mr->rkey, i + j);
                if (ibv_dereg_mr(mr)) {
                    fail("ibv_dereg_mr failed");
                }
            }
        }
    }
    free_pair(&p);
    free_memory(&mine);
}

static void rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
                  size_t len, int access)
{
    int ret = ibv_rereg_mr(mr, flags, pd, addr, len, access);

    if (ret) {
        fail("ibv_rereg_mr with %d: %d, %s", flags, ret, strerror(errno));
    }
}

/*
 * A region changes rights, PD and translation. Only the last changes its key.
 */
void mr_rereg(char **args)
{
    struct memory mine = new_memory(PIECE, IBV_ACCESS_LOCAL_WRITE);
    struct memory m = new_memory(PIECE, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_pd *other_pd = ibv_alloc_pd(dev.ctx);
    struct pair p = new_pair(NULL);
    uint8_t *other = map_pages(16 * MIB, "small");
    uint32_t rkey = m.mr->rkey;
    int round;

    (void)args;
    for (round = 0; round < 3; round++) {
        check_refused(&p, &mine, (uintptr_t)m.at, rkey, "no right to write");
        rereg(m.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS);
        check(&p, &mine, m.at, (uintptr_t)m.at, rkey, round);
        rereg(m.mr, IBV_REREG_MR_CHANGE_PD, other_pd, NULL, 0, 0);
        check_refused(&p, &mine, (uintptr_t)m.at, rkey, "another PD");
        rereg(m.mr, IBV_REREG_MR_CHANGE_PD, dev.pd, NULL, 0, 0);
        check(&p, &mine, m.at, (uintptr_t)m.at, rkey, round + 1);
        if (m.mr->rkey != rkey) {
            fail("the key has changed without need");
        }
        rereg(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 16 * MIB,
              0);
        check_refused(&p, &mine, (uintptr_t)other, rkey, "the old key");
        rkey = m.mr->rkey;
        check_refused(&p, &mine, (uintptr_t)m.at, rkey, "the old place");
        check(&p, &mine, other + 15 * MIB, (uintptr_t)other + 15 * MIB, rkey,
              round + 2);
        if (!ibv_rereg_mr(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
                          (void *)8192, 4096, 0)) {
            fail("a region of no memory");
        }
        check(&p, &mine, other + 5, (uintptr_t)other + 5, rkey, round + 3);
        rereg(m.mr, IBV_REREG_MR_CHANGE_TRANSLATION |
              IBV_REREG_MR_CHANGE_ACCESS, NULL, m.at, PIECE,
              IBV_ACCESS_LOCAL_WRITE);
        rkey = m.mr->rkey;
    }
    free_pair(&p);
    free_memory(&m);
    free_memory(&mine);
    if (ibv_dealloc_pd(other_pd)) {
        fail("the region is still in its other PD");
    }
}

/* Memory that was registered for reading becomes writable for the program. */
void mr_rereg_read_only(char **args)
{
    struct memory mine = new_memory(PIECE, IBV_ACCESS_LOCAL_WRITE);
    struct pair p = new_pair(NULL);
    uint8_t *at = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                       0);
    struct ibv_mr *mr = ibv_reg_mr(dev.pd, at, MIB, 0);

    (void)args;
    if (at == MAP_FAILED || !mr) {
        fail("cannot register what is for reading: %s", strerror(errno));
    }
    if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                      ALL_RIGHTS)) {
        fail("got rights that the program does not have");
    }
    if (mprotect(at, MIB, PROT_READ | PROT_WRITE)) {
        fail("mprotect: %s", strerror(errno));
    }
    rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL_RIGHTS);
    check(&p, &mine, at + MIB - PIECE, (uintptr_t)at + MIB - PIECE, mr->rkey,
          3);
    if (ibv_dereg_mr(mr)) {
        fail("ibv_dereg_mr failed");
    }
    free_pair(&p);
    free_memory(&mine);
}
