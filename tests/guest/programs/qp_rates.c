/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qp_rates: writes of 64 bytes on 1, 16, 128... queue pairs in turn, each
 * connected to itself. It measures the number of writes in a second, and the
 * time of a single one.
 *
 *   qp_rates -d DEVICE -g GID_INDEX [-n MESSAGES] [-a ALONE] QPS...
 *
 * For the latency ALONE messages, by default MESSAGES / 10, are posted one by
 * one. For each QPS there is a line: "qps N rate MESSAGES_PER_SECOND latency
 * MICROSECONDS". If no message completes for a minute, the program says
 * "stuck", and waits for a line of input before it fails, so that a person or a
 * test can examine the device.
 *
 * It also waits for a line of input before the writes, with only these queue
 * pairs, and after them, with none, so that a test can measure their memory.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "self_qp.h"

#define MESSAGE 64u
#define AT_ONCE 128u
#define DEPTH   64u
#define PATIENCE 60.0           /* seconds */

static struct ibv_context *context;
static char memory[2 * MESSAGE];

static void post(struct ibv_qp *qp, const struct ibv_mr *mr)
{
    struct ibv_sge sge = { (uintptr_t)memory, MESSAGE, mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { (uintptr_t)memory + MESSAGE, mr->rkey },
    };

    if (ibv_post_send(qp, &wr, &bad)) {
        fail("queue pair 0x%x takes no request", qp->qp_num);
    }
}

static void pause_here(const char *what)
{
    printf("%s\n", what);
    fflush(stdout);
    if (getchar() == EOF) {
        exit(0);
    }
}

/* Called often: read the clock only now and then. */
static void expect_progress(bool is_idle)
{
    static unsigned idle;
    static double since;

    if (!is_idle) {
        idle = 0;
    } else if (++idle == 1u << 16) {
        since = seconds();
    } else if (idle % (1u << 16) == 0 && seconds() - since > PATIENCE) {
        pause_here("stuck");
        fail("no message was done for %.0f s", PATIENCE);
    }
}

/* Seconds for @count writes, with this many in flight. */
static double run(struct ibv_qp **qps, unsigned n, struct ibv_cq *cq,
                  const struct ibv_mr *mr, unsigned count, unsigned at_once)
{
    unsigned limit = n * DEPTH < at_once ? n * DEPTH : at_once;
    unsigned posted = 0, done = 0;
    double began = seconds();

    while (done < count) {
        struct ibv_wc wc[16];
        int got;

        while (posted < count && posted - done < limit) {
            post(qps[posted++ % n], mr);
        }
        got = ibv_poll_cq(cq, 16, wc);
        for (int i = 0; i < got; i++) {
            if (wc[i].status != IBV_WC_SUCCESS) {
                fail("%s", ibv_wc_status_str(wc[i].status));
            }
        }
        expect_progress(!got);
        done += got;
    }
    return seconds() - began;
}

static void measure(unsigned n, unsigned count, unsigned alone)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory),
                                        SELF_ACCESS) : NULL;
    struct ibv_cq *cq = ibv_create_cq(context, 2 * AT_ONCE, NULL, NULL, 0);
    struct ibv_qp **qps = calloc(n, sizeof(*qps));
    double rate, latency;

    if (!mr || !cq || !qps) {
        fail("no resources: %s", strerror(errno));
    }
    for (unsigned i = 0; i < n; i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
            .cap = { .max_send_wr = DEPTH, .max_recv_wr = 4,
                     .max_send_sge = 1, .max_recv_sge = 1 },
        };

        qps[i] = ibv_create_qp(pd, &init);
        if (!qps[i]) {
            fail("queue pair %u: %s", i, strerror(errno));
        }
        self_connect(qps[i]);
    }
    pause_here("idle");
    run(qps, n, cq, mr, count / 10, AT_ONCE);
    rate = count / run(qps, n, cq, mr, count, AT_ONCE);
    latency = run(qps, n, cq, mr, alone, 1) / alone * 1e6;
    printf("qps %u rate %.0f latency %.1f\n", n, rate, latency);
    for (unsigned i = 0; i < n; i++) {
        if (ibv_destroy_qp(qps[i])) {
            fail("ibv_destroy_qp fails");
        }
    }
    free(qps);
    if (ibv_destroy_cq(cq) || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd)) {
        fail("what is not in use any more cannot be destroyed");
    }
}

int main(int argc, char **argv)
{
    const char *name = "";
    int gid_index = 1, count = 400000, alone = 0, opt;

    while ((opt = getopt(argc, argv, "d:g:n:a:")) != -1) {
        switch (opt) {
        case 'd':
            name = optarg;
            break;
        case 'g':
            gid_index = atoi(optarg);
            break;
        case 'n':
            count = atoi(optarg);
            break;
        case 'a':
            alone = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    context = self_open(name, gid_index);
    for (; optind < argc; optind++) {
        pause_here("none");
        measure(atoi(argv[optind]), count, alone ? alone : count / 10);
    }
    return ibv_close_device(context);
}
