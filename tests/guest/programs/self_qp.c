/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "self_qp.h"

#define LIMIT 60.0

static union ibv_gid gid;
static int index_of_gid;

void fail(const char *fmt, ...)
{
    va_list args;

    printf("FAIL: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    exit(1);
}

double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

struct ibv_context *self_open(const char *name, int gid_index)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;

    for (int i = 0; list && list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            context = ibv_open_device(list[i]);
        }
    }
    index_of_gid = gid_index;
    if (!context || ibv_query_gid(context, 1, gid_index, &gid)) {
        fail("no device %s", name);
    }
    ibv_free_device_list(list);
    return context;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int ret = ibv_modify_qp(qp, attr, mask);

    if (ret) {
        fail("ibv_modify_qp to %d: %s", attr->qp_state, strerror(ret));
    }
}

void self_connect(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = SELF_ACCESS,
    };

    modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num, .min_rnr_timer = 12,
        .ah_attr = {
            .is_global = 1, .port_num = 1,
            .grh = { .dgid = gid, .sgid_index = index_of_gid, .hop_limit = 1 },
        },
    };
    modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
           IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
           IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTS, .timeout = 17, .retry_cnt = 7,
        .rnr_retry = 7,
    };
    modify(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
           IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void self_wait(struct ibv_cq *cq, unsigned n)
{
    double end = seconds() + LIMIT;
    struct ibv_wc wc;
    int got;

    while (n) {
        got = ibv_poll_cq(cq, 1, &wc);
        if (got < 0) {
            fail("ibv_poll_cq: %d", got);
        }
        if (got && wc.status != IBV_WC_SUCCESS) {
            fail("completion of 0x%llx: %s", (unsigned long long)wc.wr_id,
                 ibv_wc_status_str(wc.status));
        }
        if (!got && seconds() > end) {
            fail("%u completions are missing", n);
        }
        n -= got;
    }
}
