/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's device: opening it, its limits and its port.
 */
#include "qemu/osdep.h"
#include <net/if.h>
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "net/util.h"
#include "int.h"
#include "../trace.h"

static struct ibv_context *open_device(RdmaVerbs *v, Error **errp)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;
    g_autoptr(GString) names = g_string_new("");
    bool found = false;

    for (int i = 0; list && list[i]; i++) {
        const char *name = ibv_get_device_name(list[i]);

        g_string_append_printf(names, "%s%s", i ? ", " : "", name);
        if (!strcmp(name, v->ibdev)) {
            found = true;
            ctx = ibv_open_device(list[i]);
            break;
        }
    }
    if (!found) {
        error_setg(errp, "the host has no RDMA device '%s'; it has: %s",
                   v->ibdev, names->len ? names->str : "none");
    } else if (!ctx) {
        error_setg_errno(errp, errno, "cannot open RDMA device '%s'",
                         v->ibdev);
        error_append_hint(errp, "QEMU needs read and write permission for "
                          "its /dev/infiniband/uverbs*.\n");
    }
    if (list) {
        ibv_free_device_list(list);
    }
    return ctx;
}

/* The MAC and MTU of the net device that has the first GID. */
static void read_netdev(VerbsDev *d, uint8_t port_num, RdmaPortAttr *port)
{
    struct ibv_gid_entry entry;
    char name[IF_NAMESIZE];
    g_autofree char *path = NULL;
    g_autofree char *text = NULL;
    g_autofree char *mtu_path = NULL;
    g_autofree char *mtu = NULL;

    if (ibv_query_gid_ex(d->ctx, port_num, 0, &entry, 0) ||
        !if_indextoname(entry.ndev_ifindex, name)) {
        return;
    }
    path = g_strdup_printf("/sys/class/net/%s/address", name);
    if (g_file_get_contents(path, &text, NULL, NULL)) {
        net_parse_macaddr(port->mac, g_strstrip(text));
    }
    mtu_path = g_strdup_printf("/sys/class/net/%s/mtu", name);
    if (g_file_get_contents(mtu_path, &mtu, NULL, NULL)) {
        qemu_strtoui(mtu, NULL, 10, &port->phys_mtu);
    }
}

bool verbs_dev_update_port(RdmaVerbs *v)
{
    VerbsDev *d = &v->dev;
    struct ibv_port_attr attr = {};
    RdmaPortAttr port = { .state = RDMA_PORT_DOWN };

    if (ibv_query_port(d->ctx, v->port_num, &attr) == 0) {
        port = (RdmaPortAttr) {
            .state = attr.state == IBV_PORT_ACTIVE ? RDMA_PORT_ACTIVE
                                                   : RDMA_PORT_DOWN,
            .max_mtu = attr.max_mtu,
            .active_mtu = attr.active_mtu,
            .phys_mtu = rdma_mtu_bytes(attr.active_mtu),
            .max_msg_sz = attr.max_msg_sz,
            .active_width = attr.active_width,
            .active_speed = attr.active_speed,
        };
        read_netdev(d, v->port_num, &port);
    } else {
        port = d->port;
        port.state = RDMA_PORT_DOWN;
    }
    if (!memcmp(&port, &d->port, sizeof(port))) {
        return false;
    }
    d->port = port;
    trace_rdma_verbs_port(v, port.state, port.active_mtu, port.phys_mtu);
    return true;
}

static bool check_port(RdmaVerbs *v, Error **errp)
{
    VerbsDev *d = &v->dev;
    struct ibv_port_attr attr = {};
    int ret;

    if (v->port_num < 1 || v->port_num > d->attr.phys_port_cnt) {
        error_setg(errp, "RDMA device '%s' has no port %u, its ports are 1 to "
                   "%u", v->ibdev, v->port_num, d->attr.phys_port_cnt);
        return false;
    }
    ret = ibv_query_port(d->ctx, v->port_num, &attr);
    if (ret) {
        error_setg_errno(errp, ret, "cannot query port %u of RDMA device '%s'",
                         v->port_num, v->ibdev);
        return false;
    }
    if (attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
        d->ctx->device->transport_type != IBV_TRANSPORT_IB) {
        error_setg(errp, "port %u of RDMA device '%s' is not RoCE: its link "
                   "layer is not Ethernet, or it is iWARP", v->port_num,
                   v->ibdev);
        return false;
    }
    return true;
}

/* Device attributes do not include max_inline_data, so try some values. */
static uint32_t probe_max_inline(VerbsDev *d)
{
    static const uint32_t sizes[] = { 4096, 1024, 512, 400, 256, 128, 64 };
    struct ibv_pd *pd = ibv_alloc_pd(d->ctx);
    struct ibv_cq *cq = ibv_create_cq(d->ctx, 1, NULL, NULL, 0);
    uint32_t found = 0;

    for (int i = 0; pd && cq && !found && i < ARRAY_SIZE(sizes); i++) {
        struct ibv_qp_init_attr init = {
            .send_cq = cq,
            .recv_cq = cq,
            .qp_type = IBV_QPT_RC,
            .cap = {
                .max_send_wr = 1,
                .max_recv_wr = 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = sizes[i],
            },
        };
        struct ibv_qp *qp = ibv_create_qp(pd, &init);

        if (qp) {
            found = MIN(sizes[i], init.cap.max_inline_data);
            ibv_destroy_qp(qp);
        }
    }
    if (cq) {
        ibv_destroy_cq(cq);
    }
    if (pd) {
        ibv_dealloc_pd(pd);
    }
    return found;
}

bool verbs_dev_open(RdmaVerbs *v, Error **errp)
{
    VerbsDev *d = &v->dev;
    int ret;

    *d = (VerbsDev) { };
    d->ctx = open_device(v, errp);
    if (!d->ctx) {
        return false;
    }
    ret = ibv_query_device(d->ctx, &d->attr);
    if (ret) {
        error_setg_errno(errp, ret, "cannot query RDMA device '%s'", v->ibdev);
    } else if (check_port(v, errp)) {
        d->max_inline = probe_max_inline(d);
        verbs_dev_update_port(v);
        return true;
    }
    verbs_dev_close(v);
    return false;
}

int verbs_dev_destroyed(RdmaVerbs *v, int err)
{
    return qatomic_read(&v->dev.gone) ? 0 : -err;
}

void verbs_dev_close(RdmaVerbs *v)
{
    g_clear_pointer(&v->dev.ctx, ibv_close_device);
}

static uint32_t at_most(uint32_t want, int have)
{
    return MIN(want, (uint32_t)MAX(have, 0));
}

void verbs_dev_limit(RdmaVerbs *v, RdmaBackendLimits *l)
{
    const struct ibv_device_attr *a = &v->dev.attr;
    const unsigned both_types = IBV_DEVICE_MEM_WINDOW |
                                IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    bool windows = (a->device_cap_flags & both_types) == both_types;

    /*
     * l->max_qp counts QP 0 and QP 1, a->max_qp does not. The result is at
     * most 2 too low, which is safe.
     */
    l->max_qp = at_most(l->max_qp, a->max_qp);
    l->max_qp_wr = at_most(l->max_qp_wr, a->max_qp_wr);
    l->max_send_sge = at_most(l->max_send_sge, a->max_sge);
    l->max_recv_sge = at_most(l->max_recv_sge, a->max_sge);
    l->max_inline_data = MIN(l->max_inline_data, v->dev.max_inline);
    l->max_cq = at_most(l->max_cq, a->max_cq);
    l->max_cqe = at_most(l->max_cqe, a->max_cqe);
    l->max_mr = at_most(l->max_mr, a->max_mr);
    l->max_pd = at_most(l->max_pd, a->max_pd);
    l->max_mr_size = MIN(l->max_mr_size, a->max_mr_size);
    l->max_rd_atomic = at_most(l->max_rd_atomic,
                               MIN(a->max_qp_rd_atom,
                                   a->max_qp_init_rd_atom));
    l->max_srq = at_most(l->max_srq, a->max_srq);
    l->max_srq_wr = at_most(l->max_srq_wr, a->max_srq_wr);
    l->max_srq_sge = at_most(l->max_srq_sge, a->max_srq_sge);
    l->max_mw = windows ? at_most(l->max_mw, a->max_mw) : 0;
    l->max_mcast_grp = at_most(l->max_mcast_grp, a->max_mcast_grp);
    l->max_mcast_qp_attach = at_most(l->max_mcast_qp_attach,
                                     a->max_mcast_qp_attach);
    l->max_reg_pages = 0;
    l->extensions = 0;
    l->atomic_cap = MIN(l->atomic_cap, a->atomic_cap);
    /* libibverbs has no work request that registers memory. */
    l->device_cap_flags &= ~IBV_DEVICE_MEM_MGT_EXTENSIONS;
    l->host_numbers = true;
}
