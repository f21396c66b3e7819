/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * no_syscalls: a queue pair, its own peer, sends, receives, polls and arms its
 * CQ, in a process that any system call would end except those to tell the
 * time and to exit.
 *
 *   no_syscalls DEVICE GID_INDEX
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "self_qp.h"

#define MESSAGE 64u
#define ROUNDS  2000

static char memory[2 * MESSAGE];

static void stay_out_of_the_kernel(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {
        .len = sizeof(code) / sizeof(code[0]), .filter = code,
    };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        fail("no filter of system calls: %s", strerror(errno));
    }
}

static void exchange(struct ibv_qp *qp, const struct ibv_mr *mr)
{
    struct ibv_sge from = { (uintptr_t)memory, MESSAGE, mr->lkey };
    struct ibv_sge to = { (uintptr_t)memory + MESSAGE, MESSAGE, mr->lkey };
    struct ibv_recv_wr *bad_recv, recv = { .sg_list = &to, .num_sge = 1 };
    struct ibv_send_wr *bad_send, send = {
        .sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
    };

    if (ibv_post_recv(qp, &recv, &bad_recv) ||
        ibv_post_send(qp, &send, &bad_send) ||
        ibv_req_notify_cq(qp->send_cq, 0)) {
        fail("the queue pair takes no request");
    }
    self_wait(qp->send_cq, 2);
}

int main(int argc, char **argv)
{
    struct ibv_context *context =
        argc == 3 ? self_open(argv[1], atoi(argv[2])) : NULL;
    struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory),
                                        SELF_ACCESS) : NULL;
    struct ibv_comp_channel *channel =
        mr ? ibv_create_comp_channel(context) : NULL;
    struct ibv_cq *cq = channel ? ibv_create_cq(context, 16, NULL, channel, 0)
                                : NULL;
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };
    struct ibv_qp *qp = cq ? ibv_create_qp(pd, &init) : NULL;

    if (!qp) {
        fail("no resources: %s", strerror(errno));
    }
    self_connect(qp);
    exchange(qp, mr);
    stay_out_of_the_kernel();
    for (int i = 0; i < ROUNDS; i++) {
        exchange(qp, mr);
    }
    _exit(0);
}
