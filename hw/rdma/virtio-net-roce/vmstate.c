/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of a virtio-net-roce device: address handles, whether CQs are
 * armed, the link that the driver has read, and whether the driver uses RoCE.
 * The core migrates objects, see hw/rdma/hca-vmstate.h.
 */
#include "qemu/osdep.h"
#include "int.h"

QEMU_BUILD_BUG_ON(offsetof(NetRoceCq, core));

/* Completion queues */

static const VMStateDescription vmstate_cq = {
    .name = "virtio-net-roce/cq",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT8(arm, NetRoceCq),
        VMSTATE_END_OF_LIST()
    },
};

static bool load_cq(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    NetRoceCq *cq = obj;

    if (!rdma_hca_record_check(r, !cq->core.is_eq, "is_eq", 1, "0") ||
        !rdma_hca_record_max(r, "arm", cq->arm, NET_ROCE_ARM_NEXT)) {
        return false;
    }
    net_roce_cq_start(net_roce_of(hca), cq);
    return true;
}

static void free_obj(RdmaHca *hca, void *obj)
{
    g_free(obj);
}

const RdmaHcaObjectOps net_roce_cqs = {
    .size = sizeof(NetRoceCq),
    .vmsd = &vmstate_cq,
    .load = load_cq,
    .free = free_obj,
};

/* Queue pairs */

static const VMStateDescription vmstate_qp = {
    .name = "virtio-net-roce/qp",
    .fields = (const VMStateField[]) {
        VMSTATE_END_OF_LIST()
    },
};

static bool load_qp(RdmaHca *hca, void *obj, const RdmaHcaRecord *r)
{
    RdmaHcaQp *qp = obj;
    const RdmaQpCap *cap = &qp->init.cap;

    if (!rdma_hca_record_max(r, "max_send_wr", cap->max_send_wr,
                             hca->ring_size) ||
        !rdma_hca_record_max(r, "max_recv_wr", cap->max_recv_wr,
                             hca->ring_size)) {
        return false;
    }
    net_roce_qp_start(net_roce_of(hca), qp);
    return true;
}

const RdmaHcaObjectOps net_roce_qps = {
    .size = sizeof(RdmaHcaQp),
    .vmsd = &vmstate_qp,
    .load = load_qp,
    .free = free_obj,
};

/* Address handles */

static const VMStateDescription vmstate_ah = {
    .name = "virtio-net-roce/ah",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pdn, NetRoceAh),
        VMSTATE_BUFFER(bytes, NetRoceAh),
        VMSTATE_END_OF_LIST()
    },
};

static bool n_saved_is_valid(void *opaque, int version_id)
{
    NetRoce *s = opaque;

    return s->n_saved_ahs <= NET_ROCE_MAX_AH;
}

static bool check_ahs(NetRoce *s)
{
    for (uint32_t n = 0; n < s->n_saved_ahs; n++) {
        const RdmaHcaRecord r = { "address handle", n };
        uint32_t pdn = s->ahs[n].pdn;
        RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, pdn);

        if (!rdma_hca_record_check(&r, !pdn || pd, "pdn", pdn, "a PD")) {
            return false;
        }
        if (pd) {
            pd->users++;
        }
    }
    return true;
}

/* Virtqueues */

static bool has_object(NetRoce *s, uint32_t n)
{
    uint32_t first_sq = NET_ROCE_SQ_VQ(s->max_cq, 0);

    return n < first_sq
           ? rdma_hca_table_get(&s->hca.cqs, n - NET_ROCE_CQ_VQ(0)) != NULL
           : rdma_hca_table_get(&s->hca.qps, (n - first_sq) / 2) != NULL;
}

static void hide_vqs(NetRoce *s)
{
    uint32_t end = NET_ROCE_NUM_VQS(s->max_cq, s->max_qp);

    s->hidden = (RdmaVqHidden) {};
    for (uint32_t n = NET_ROCE_CQ_VQ(0); n < end; n++) {
        if (!has_object(s, n)) {
            rdma_vq_hide(&s->hidden, VIRTIO_DEVICE(s), n);
        }
    }
}

/* The device */

static int pre_save(void *opaque)
{
    NetRoce *s = opaque;

    s->n_saved_ahs = s->n_ahs;
    return 0;
}

static int pre_load(void *opaque)
{
    net_roce_ahs_reset(opaque);
    return 0;
}

/* Handles count only now: if the stream ends early, there are none. */
static int post_load(void *opaque, int version_id)
{
    NetRoce *s = opaque;

    if (!rdma_vq_check_empty(VIRTIO_DEVICE(s)) || !check_ahs(s)) {
        rdma_hca_forget_loaded(&s->hca);
        return -EINVAL;
    }
    s->n_ahs = s->n_saved_ahs;
    hide_vqs(s);
    return 0;
}

const VMStateDescription vmstate_net_roce_device = {
    .name = "virtio-net-roce-device",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = pre_save,
    .pre_load = pre_load,
    .post_load = post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_BOOL(has_roce, NetRoce),
        VMSTATE_BOOL(link_up, NetRoce),
        VMSTATE_BOOL(notify_config, NetRoce),
        VMSTATE_UINT32(n_saved_ahs, NetRoce),
        VMSTATE_VALIDATE("more address handles than the device has",
                         n_saved_is_valid),
        VMSTATE_STRUCT_VARRAY_POINTER_UINT32(ahs, NetRoce, n_saved_ahs,
                                             vmstate_ah, NetRoceAh),
        VMSTATE_RDMA_HCA(hca, NetRoce),
        VMSTATE_END_OF_LIST()
    },
};

int net_roce_post_load(VirtIODevice *vdev)
{
    NetRoce *s = NET_ROCE(vdev);

    if (!rdma_vq_check_sizes(vdev)) {
        rdma_hca_forget_loaded(&s->hca);
        net_roce_ahs_reset(s);
        return -EINVAL;
    }
    rdma_vq_show(&s->hidden, vdev);
    /* The link of the destination may differ from that of the source. */
    net_roce_nic_check_link(s);
    return 0;
}

/* The first part of the stream */

const VMStateDescription vmstate_net_roce_limits = {
    .name = "virtio-net-roce-early",
    .version_id = 1,
    .minimum_version_id = 1,
    .early_setup = true,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_HCA_LIMITS(hca, NetRoce),
        VMSTATE_RDMA_EQUAL("host_mtu", conf.host_mtu, NetRoce),
        /* The guest has read it, and peers send RoCE frames to it. */
        VMSTATE_RDMA_EQUAL("mac", mac, NetRoce),
        VMSTATE_END_OF_LIST()
    },
};
