/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * many_objects: create as many protection domains, completion queues, queue
 * pairs and memory regions as the device promises, use each, require that one
 * more is refused, destroy all, and repeat. If the device leaks one, the second
 * round has fewer.
 *
 *   many_objects -d DEVICE -g GID_INDEX [-m MOST] [-r ROUNDS]
 *
 * MOST bounds the number of memory regions.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "self_qp.h"

/* memory that the guest's kernel may have for itself */
#define SLACK       16
#define REGION      4096u
#define MESSAGE     512u

static struct ibv_context *context;
static struct ibv_device_attr limits;
static unsigned most = 65536;

/* Create as many as the device promises, less a few that others may have. */
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

/*
 * All queue pairs at once, each with a completion queue as long as there are
 * some.
 */
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
    mr = ibv_reg_mr(pd, from, max_qp * MESSAGE * 2ul, SELF_ACCESS);
    if (!mr) {
        fail("ibv_reg_mr: %s", strerror(errno));
    }
    for (i = 0; i < nqp; i++) {
        self_connect(qp[i]);
    }
    for (i = 0; i < nqp; i++) {
        post_message(qp[i], mr, from + i * MESSAGE, to + i * MESSAGE);
    }
    for (i = 0; i < nqp; i++) {
        self_wait(cq[i % ncq], 2);
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
    self_connect(qp);
    while (n <= promised && n < most &&
           (mr[n] = ibv_reg_mr(pd, at, REGION, SELF_ACCESS))) {
        n++;
    }
    judge("MR", n, most < promised ? most : promised);
    for (i = 0; i < n; i++) {
        memset(at, i * 7 + 1, MESSAGE);
        memset(at + MESSAGE, 0, MESSAGE);
        post_message(qp, mr[i], at, at + MESSAGE);
        self_wait(cq, 2);
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
        struct ibv_mr *mr = ibv_reg_mr(pd[i], memory, sizeof(memory),
                                       SELF_ACCESS);

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

int main(int argc, char **argv)
{
    const char *name = "";
    int gid_index = 1, rounds = 2, opt, i;

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
    context = self_open(name, gid_index);
    if (ibv_query_device(context, &limits)) {
        fail("ibv_query_device fails");
    }
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
