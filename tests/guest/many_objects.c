/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * many_objects: create as many protection domains, completion queues, queue
 * pairs and memory regions as the device says it has, use each, see one more
 * refused, destroy all, and do it again: a device that loses one on the way
 * has fewer the second time.
 *
 *   many_objects -d DEVICE -g GID_INDEX [-m MOST] [-r ROUNDS]
 *
 * MOST bounds the number of memory regions.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>

/* What the guest's kernel may have for itself. */
#define SLACK       16
#define REGION      4096u
#define MESSAGE     512u
#define ACCESS      (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define LIMIT       60.0

static struct ibv_context *context;
static struct ibv_device_attr limits;
static union ibv_gid gid;
static int gid_index = 1;
static unsigned most = 65536;

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *fmt, ...)
{
    va_list args;

    printf("FAIL: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    exit(1);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* As many as the device promises, but for a few that others may have. */
static void judge(const char *what, unsigned n, unsigned promised)
{
    printf("  %-4s %u of %u\n", what, n, promised);
    fflush(stdout);
    if (n > promised || n + SLACK < promised) {
        fail("%u %ss: the device promises %u", n, what, promised);
    }
}

static void *many(unsigned n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (!p) {
        fail("out of memory");
    }
    return p;
}

static void wait_for(struct ibv_cq *cq, unsigned n)
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

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int ret = ibv_modify_qp(qp, attr, mask);

    if (ret) {
        fail("ibv_modify_qp to %d: %s", attr->qp_state, strerror(ret));
    }
}

/* Make a queue pair its own peer. */
static void connect_to_itself(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS,
    };

    modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
           IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num, .min_rnr_timer = 12,
        .ah_attr = {
            .is_global = 1, .port_num = 1,
            .grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 1 },
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

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };

    return ibv_create_qp(pd, &init);
}

/* A message of a queue pair to itself, from @from to @to. */
static void post_message(struct ibv_qp *qp, struct ibv_mr *mr, char *from,
                         char *to)
{
    struct ibv_sge out = { (uintptr_t)from, MESSAGE, mr->lkey };
    struct ibv_sge in = { (uintptr_t)to, MESSAGE, mr->lkey };
    struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = &in, .num_sge = 1 };
    struct ibv_send_wr send = {
        .wr_id = 2, .sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };
    struct ibv_recv_wr *bad_recv;
    struct ibv_send_wr *bad_send;

    if (ibv_post_recv(qp, &recv, &bad_recv) ||
        ibv_post_send(qp, &send, &bad_send)) {
        fail("queue pair 0x%x takes no request", qp->qp_num);
    }
}

/* All queue pairs at once, each with a completion queue while there are. */
static void queues(struct ibv_pd *pd)
{
    unsigned max_cq = limits.max_cq, max_qp = limits.max_qp, ncq = 0, nqp = 0;
    struct ibv_cq **cq = many(max_cq, sizeof(*cq));
    struct ibv_qp **qp = many(max_qp, sizeof(*qp));
    char *from = many(max_qp * 2, MESSAGE), *to = from + max_qp * MESSAGE;
    struct ibv_mr *mr;
    unsigned i;

    while (ncq <= max_cq &&
           (cq[ncq] = ibv_create_cq(context, 8, NULL, NULL, 0))) {
        ncq++;
    }
    judge("CQ", ncq, max_cq);
    while (nqp <= max_qp && (qp[nqp] = make_qp(pd, cq[nqp % ncq]))) {
        nqp++;
    }
    judge("QP", nqp, max_qp);

    for (i = 0; i < nqp * MESSAGE; i++) {
        from[i] = (i * 2654435761u) >> 24;
    }
    mr = ibv_reg_mr(pd, from, max_qp * MESSAGE * 2ul, ACCESS);
    if (!mr) {
        fail("ibv_reg_mr: %s", strerror(errno));
    }
    for (i = 0; i < nqp; i++) {
        connect_to_itself(qp[i]);
    }
    for (i = 0; i < nqp; i++) {
        post_message(qp[i], mr, from + i * MESSAGE, to + i * MESSAGE);
    }
    for (i = 0; i < nqp; i++) {
        wait_for(cq[i % ncq], 2);
    }
    if (memcmp(from, to, nqp * MESSAGE)) {
        fail("what the queue pairs have delivered is not what was sent");
    }

    for (i = 0; i < nqp; i++) {
        if (ibv_destroy_qp(qp[i])) {
            fail("ibv_destroy_qp fails");
        }
    }
    for (i = 0; i < ncq; i++) {
        if (ibv_destroy_cq(cq[i])) {
            fail("ibv_destroy_cq fails");
        }
    }
    if (ibv_dereg_mr(mr)) {
        fail("ibv_dereg_mr fails");
    }
    free(cq);
    free(qp);
    free(from);
}

/* Each region takes a message of its own. */
static void regions(struct ibv_pd *pd)
{
    unsigned promised = limits.max_mr, n = 0, i;
    struct ibv_cq *cq = ibv_create_cq(context, 8, NULL, NULL, 0);
    struct ibv_qp *qp = cq ? make_qp(pd, cq) : NULL;
    struct ibv_mr **mr = many(promised, sizeof(*mr));
    char *at;

    if (!qp || posix_memalign((void **)&at, REGION, REGION)) {
        fail("no queue pair");
    }
    connect_to_itself(qp);
    while (n <= promised && n < most &&
           (mr[n] = ibv_reg_mr(pd, at, REGION, ACCESS))) {
        n++;
    }
    judge("MR", n, most < promised ? most : promised);
    for (i = 0; i < n; i++) {
        memset(at, i * 7 + 1, MESSAGE);
        memset(at + MESSAGE, 0, MESSAGE);
        post_message(qp, mr[i], at, at + MESSAGE);
        wait_for(cq, 2);
        if (memcmp(at, at + MESSAGE, MESSAGE)) {
            fail("region %u has not got its message", i);
        }
    }
    for (i = 0; i < n; i++) {
        if (ibv_dereg_mr(mr[i])) {
            fail("ibv_dereg_mr fails");
        }
    }
    if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq)) {
        fail("ibv_destroy_qp or ibv_destroy_cq fails");
    }
    free(mr);
    free(at);
}

/* Each domain takes a region. */
static void domains(void)
{
    unsigned promised = limits.max_pd, n = 0, i;
    struct ibv_pd **pd = many(promised, sizeof(*pd));
    static char memory[64];

    while (n <= promised && (pd[n] = ibv_alloc_pd(context))) {
        n++;
    }
    judge("PD", n, promised);
    for (i = 0; i < n; i++) {
        struct ibv_mr *mr = ibv_reg_mr(pd[i], memory, sizeof(memory), ACCESS);

        if (!mr) {
            fail("domain %u takes no region: %s", i, strerror(errno));
        }
        if (!ibv_dealloc_pd(pd[i])) {
            fail("a domain with a region went away");
        }
        if (ibv_dereg_mr(mr)) {
            fail("ibv_dereg_mr fails");
        }
    }
    for (i = 0; i < n; i++) {
        if (ibv_dealloc_pd(pd[i])) {
            fail("ibv_dealloc_pd fails");
        }
    }
    free(pd);
}

static void open_device(const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int i;

    for (i = 0; list && list[i]; i++) {
        if (!strcmp(ibv_get_device_name(list[i]), name)) {
            context = ibv_open_device(list[i]);
        }
    }
    if (!context || ibv_query_device(context, &limits) ||
        ibv_query_gid(context, 1, gid_index, &gid)) {
        fail("no device %s", name);
    }
    ibv_free_device_list(list);
}

int main(int argc, char **argv)
{
    const char *name = "";
    int rounds = 2, opt, i;

    while ((opt = getopt(argc, argv, "d:g:m:r:")) != -1) {
        switch (opt) {
        case 'd':
            name = optarg;
            break;
        case 'g':
            gid_index = atoi(optarg);
            break;
        case 'm':
            most = atoi(optarg);
            break;
        case 'r':
            rounds = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    open_device(name);
    for (i = 1; i <= rounds; i++) {
        struct ibv_pd *pd;
        double began = seconds();

        printf("round %d\n", i);
        domains();
        pd = ibv_alloc_pd(context);
        if (!pd) {
            fail("ibv_alloc_pd: %s", strerror(errno));
        }
        queues(pd);
        regions(pd);
        if (ibv_dealloc_pd(pd)) {
            fail("ibv_dealloc_pd fails");
        }
        printf("  %.1f s\n", seconds() - began);
    }
    printf("PASS\n");
    return ibv_close_device(context);
}
