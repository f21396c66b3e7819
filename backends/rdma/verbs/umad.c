/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MADs of the connection manager, through ib_umad of the host's kernel.
 *
 * The host's kernel owns QP 1 of the port, and passes each class of MADs to one
 * user. ib_umad makes this process the user, unless ib_cm of the kernel or
 * another process has the class.
 */
#include "qemu/osdep.h"
#include <infiniband/umad.h>
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "int.h"

struct VerbsUmad {
    int port;                       /* of libibumad */
    uint32_t agent;
};

/* The layout in which libibumad reads and writes MADs */
typedef struct Packet {
    struct ib_user_mad head;
    uint8_t mad[VERBS_MAD_LEN];
} Packet;

/* On kernels before 2.6.24 libibumad has a shorter header. */
static bool check_layout(Error **errp)
{
    if (umad_size() == offsetof(Packet, mad)) {
        return true;
    }
    error_setg(errp, "libibumad has MADs of another layout than QEMU");
    return false;
}

static bool register_agent(VerbsUmad *u, const char *ibdev, uint8_t port_num,
                           Error **errp)
{
    struct umad_reg_attr attr = {
        .mgmt_class = RDMA_MAD_CLASS_CM,
        .mgmt_class_version = RDMA_MAD_CM_VERSION,
        .method_mask = { 1ull << RDMA_MAD_METHOD_SEND },
    };
    int err = umad_register2(u->port, &attr, &u->agent);

    if (!err) {
        return true;
    }
    error_setg_errno(errp, err, "the host does not give QEMU the MADs of the "
                     "connection manager on port %u of '%s': its module ib_cm "
                     "has them, or another QEMU or program; unload the "
                     "modules that use ib_cm and itself (rdma_ucm, rdma_cm, "
                     "ib_cm, ...), or set cm=off", port_num, ibdev);
    return false;
}

VerbsUmad *verbs_umad_open(const char *ibdev, uint8_t port_num, Error **errp)
{
    VerbsUmad *u = g_new0(VerbsUmad, 1);

    errno = 0;
    u->port = umad_open_port(ibdev, port_num);
    if (u->port < 0) {
        error_setg_errno(errp, errno ?: ENODEV, "cannot open the device for "
                         "MADs of port %u of '%s': load the host's module "
                         "ib_umad, and give QEMU read and write permission "
                         "for the port's /dev/infiniband/umad*", port_num,
                         ibdev);
        g_free(u);
        return NULL;
    }
    if (!check_layout(errp) || !register_agent(u, ibdev, port_num, errp)) {
        verbs_umad_close(u);
        return NULL;
    }
    g_unix_set_fd_nonblocking(umad_get_fd(u->port), true, NULL);
    return u;
}

void verbs_umad_close(VerbsUmad *u)
{
    umad_close_port(u->port);
    g_free(u);
}

int verbs_umad_fd(const VerbsUmad *u)
{
    return umad_get_fd(u->port);
}

int verbs_umad_send(VerbsUmad *u, const VerbsMad *mad)
{
    Packet p = {
        .head.addr = {
            .qpn = cpu_to_be32(mad->qpn),
            .qkey = cpu_to_be32(RDMA_GSI_QKEY),
            .sl = mad->ah.sl,
            .grh_present = 1,
            .gid_index = mad->ah.grh.sgid_index,
            .hop_limit = mad->ah.grh.hop_limit,
            .traffic_class = mad->ah.grh.traffic_class,
            .flow_label = cpu_to_be32(mad->ah.grh.flow_label),
        },
    };

    memcpy(p.head.addr.gid, mad->ah.grh.dgid.raw, RDMA_GID_LEN);
    memcpy(p.mad, mad->data, VERBS_MAD_LEN);
    errno = 0;
    /* No timeout: the guest's connection manager waits for answers. */
    if (umad_send(u->port, u->agent, &p, VERBS_MAD_LEN, 0, 0)) {
        return -(errno ?: EIO);
    }
    return 0;
}

int verbs_umad_recv(VerbsUmad *u, VerbsMad *mad)
{
    Packet p = {};
    int length = VERBS_MAD_LEN;
    int ret = umad_recv(u->port, &p, &length, 0);

    if (ret < 0) {
        return ret;
    }
    if (umad_status(&p) || length != VERBS_MAD_LEN ||
        !p.head.addr.grh_present) {
        return -EBADMSG;
    }
    *mad = (VerbsMad) {
        .qpn = be32_to_cpu(p.head.addr.qpn),
        .ah.sl = p.head.addr.sl,
        .ah.grh.sgid_index = p.head.addr.gid_index,
        .ah.grh.hop_limit = p.head.addr.hop_limit,
        .ah.grh.traffic_class = p.head.addr.traffic_class,
        .ah.grh.flow_label = be32_to_cpu(p.head.addr.flow_label),
    };
    memcpy(mad->ah.grh.dgid.raw, p.head.addr.gid, RDMA_GID_LEN);
    memcpy(mad->data, p.mad, VERBS_MAD_LEN);
    return 0;
}
