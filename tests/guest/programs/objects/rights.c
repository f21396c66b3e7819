/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Privileges of the kernel: QP 1, and Q_Keys with the highest bit */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "objects.h"

#define NOBODY 65534
#define QPT_GSI 1
#define PRIVILEGED_QKEY 0x80010000

static int set_qkey(struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = qkey,
    };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                                    IBV_QP_PORT | IBV_QP_QKEY);
}

/*
 * An unprivileged process has neither, so its messages cannot pass for those of
 * a connection manager: the device replaces such a Q_Key of a work request by
 * that of its QP.
 */
void rights_of_the_kernel(char **args)
{
    struct ibv_cq *cq = new_cq(4);
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { 4, 4, 1, 1, 0 },
        .qp_type = (enum ibv_qp_type)QPT_GSI,
    };
    struct ibv_qp *qp;
    int ret;

    (void)args;
    if (setgid(NOBODY) || setuid(NOBODY)) {
        fail("setuid: %s", strerror(errno));
    }
    if (ibv_create_qp(dev.pd, &init)) {
        fail("there is a QP of type GSI");
    }
    qp = new_qp(IBV_QPT_UD, cq, NULL, 0);
    if (qp->qp_num <= 1) {
        fail("QP %u is the kernel's", qp->qp_num);
    }
    ret = set_qkey(qp, PRIVILEGED_QKEY);
    must_fail("a privileged Q_Key", ret, EPERM);
    ret = set_qkey(qp, QKEY);
    if (ret) {
        fail("another Q_Key: %s", strerror(ret));
    }
}
