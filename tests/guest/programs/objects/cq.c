/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completions that only a broken device would write. The slots of a CQ are
 * memory of the process, so the case writes them itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include "objects.h"

#define MAX_MAPS 64
#define DEPTH 64
/* Bytes of counters at the start of a CQ's mapping; slots follow. */
#define COUNTERS 4096
#define TIMEOUT_MS 10000

/* Mappings of the device's file */
struct maps {
    size_t num;
    struct map {
        uint8_t *at;
        size_t size;
    } map[MAX_MAPS];
};

static struct maps read_maps(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    struct maps maps = { 0 };
    uintptr_t start, end;
    char line[512];

    if (!file) {
        fail("/proc/self/maps: %s", strerror(errno));
    }
    while (fgets(line, sizeof(line), file)) {
        if (!strstr(line, "/dev/infiniband/uverbs")) {
            continue;
        }
        if (maps.num == MAX_MAPS ||
            sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2) {
            fail("mapping %zu: %s", maps.num, line);
        }
        maps.map[maps.num++] = (struct map) { (uint8_t *)start, end - start };
    }
    fclose(file);
    return maps;
}

static bool has_map(const struct maps *maps, const struct map *map)
{
    for (size_t i = 0; i < maps->num; i++) {
        if (maps->map[i].at == map->at) {
            return true;
        }
    }
    return false;
}

/* A CQ, and its slots */
static struct ibv_cq *new_mapped_cq(struct ibv_comp_channel *channel,
                                    struct map *slots)
{
    struct maps before = read_maps();
    struct ibv_cq *cq = ibv_create_cq(dev.ctx, DEPTH, NULL, channel, 0);
    struct maps after = read_maps();

    if (!cq) {
        fail("ibv_create_cq: %s", strerror(errno));
    }
    for (size_t i = 0; i < after.num; i++) {
        if (!has_map(&before, &after.map[i])) {
            slots->at = after.map[i].at + COUNTERS;
            slots->size = after.map[i].size - COUNTERS;
            return cq;
        }
    }
    fail("the CQ is not mapped");
}

/* Copy the slots of a CQ to another one. */
static void forge(const struct map *to, const struct map *from)
{
    if (to->size != from->size) {
        fail("CQs of one depth have %zu and %zu bytes", to->size, from->size);
    }
    memcpy(to->at, from->at, from->size);
}

/* The device has written a completion to the armed CQ. */
static void await_completion(struct ibv_comp_channel *channel)
{
    struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;

    if (poll(&fd, 1, TIMEOUT_MS) != 1 ||
        ibv_get_cq_event(channel, &cq, &context)) {
        fail("no event of the CQ");
    }
    ibv_ack_cq_events(cq, 1);
}

/* A queue pair whose only WRITE has completed, to a CQ that was not polled */
struct written {
    struct ibv_comp_channel *channel;
    struct map slots;               /* of p.acq */
    struct pair p;                  /* the WRITE of p.a */
    struct memory m;
};

#define WR_ID 7

static struct written new_written(struct ibv_srq *srq)
{
    struct written w = { .channel = ibv_create_comp_channel(dev.ctx) };
    struct ibv_sge sge;
    struct ibv_send_wr wr = {
        .wr_id = WR_ID,
        .opcode = IBV_WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
    };

    if (!w.channel) {
        fail("ibv_create_comp_channel: %s", strerror(errno));
    }
    w.m = new_memory(64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    w.p.acq = new_mapped_cq(w.channel, &w.slots);
    w.p.bcq = new_cq(1);
    w.p.a = new_qp(IBV_QPT_RC, w.p.acq, srq, 0);
    w.p.b = new_qp(IBV_QPT_RC, w.p.bcq, NULL, 0);
    connect_rc(w.p.a, w.p.b);
    must_fail("ibv_req_notify_cq", ibv_req_notify_cq(w.p.acq, 0), 0);
    sge = (struct ibv_sge) {
        .addr = (uintptr_t)w.m.at, .length = w.m.size, .lkey = w.m.mr->lkey,
    };
    wr.wr.rdma.remote_addr = (uintptr_t)w.m.at;
    wr.wr.rdma.rkey = w.m.mr->rkey;
    post(w.p.a, &wr);
    await_completion(w.channel);
    return w;
}

static void free_written(struct written *w)
{
    free_memory(&w->m);
    free_pair(&w->p);
    if (ibv_destroy_comp_channel(w->channel)) {
        fail("cannot destroy the channel");
    }
}

/*
 * A completion of a queue pair arrives in a CQ that the queue pair does not
 * use. The provider drops it; the completion in the queue pair's own CQ stays.
 */
void cq_foreign_completion(char **args)
{
    struct map slots;
    struct ibv_cq *foreign = new_mapped_cq(NULL, &slots);
    struct written w = new_written(NULL);
    struct ibv_wc wc;

    (void)args;
    forge(&slots, &w.slots);
    if (ibv_poll_cq(foreign, 1, &wc)) {
        fail("a CQ that QP 0x%x does not use has its wr_id 0x%lx", wc.qp_num,
             (long)wc.wr_id);
    }
    expect(w.p.acq, WR_ID);
    free_written(&w);
    if (ibv_destroy_cq(foreign)) {
        fail("cannot destroy the CQ");
    }
}

/* A queue pair with an SRQ has no receives of its own that could complete. */
void cq_receive_of_srq(char **args)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
    struct written w;

    (void)args;
    if (!srq) {
        fail("ibv_create_srq: %s", strerror(errno));
    }
    w = new_written(srq);
    /* The device's wr_id, at the start of a slot, as for a receive */
    w.slots.at[3] |= 0x80;
    expect_none(w.p.acq);
    free_written(&w);
    if (ibv_destroy_srq(srq)) {
        fail("cannot destroy the SRQ");
    }
}
