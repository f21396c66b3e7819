/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration space, with the layout of docs/specs/virtio-rdma.rst: limits of
 * the device, its GUID and port
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "base.h"

#define VENDOR_ID       0x525400
#define VENDOR_PART_ID  VIRTIO_ID_RDMA
#define HW_VERSION      1
#define MAX_AH          65536
/* 4.096 us << 15, as hardware adapters report */
#define CA_ACK_DELAY    15
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_config) != 640);

/* The guest ABI has the numbers of rdma/verbs.h, so no conversion is needed. */
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_ATOMIC_NONE != RDMA_ATOMIC_NONE);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_ATOMIC_HCA != RDMA_ATOMIC_HCA);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_ATOMIC_GLOB != RDMA_ATOMIC_GLOB);

void virtio_rdma_config_update(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    struct virtio_rdma_config *c = &s->config;
    RdmaPortAttr port = {};

    rdma_hca_port_get(&s->hca, &port);
    memcpy(s->conf.mac.a, port.mac, sizeof(port.mac));
    *c = (struct virtio_rdma_config) {
        .phys_port_cnt = cpu_to_le32(1),
        .vendor_id = cpu_to_le32(VENDOR_ID),
        .vendor_part_id = cpu_to_le32(VENDOR_PART_ID),
        .hw_ver = cpu_to_le32(HW_VERSION),
        .max_mr_size = cpu_to_le64(l->max_mr_size),
        .page_size_cap = cpu_to_le64(RDMA_PAGE_SIZE),
        .max_qp = cpu_to_le32(s->max_vq_qp),
        .max_qp_wr = cpu_to_le32(rdma_hca_ring_depth(&s->hca, l->max_qp_wr)),
        .device_cap_flags = cpu_to_le64(l->device_cap_flags),
        .max_send_sge = cpu_to_le32(l->max_send_sge),
        .max_recv_sge = cpu_to_le32(l->max_recv_sge),
        .max_sge_rd = cpu_to_le32(l->max_send_sge),
        .max_cq = cpu_to_le32(s->max_vq_cq),
        .max_cqe = cpu_to_le32(rdma_hca_ring_depth(&s->hca, l->max_cqe)),
        .max_mr = cpu_to_le32(l->max_mr),
        .max_pd = cpu_to_le32(l->max_pd),
        .max_qp_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .max_res_rd_atom = cpu_to_le32(l->max_rd_atomic * l->max_qp),
        .max_qp_init_rd_atom = cpu_to_le32(l->max_rd_atomic),
        .atomic_cap = l->atomic_cap,
        .max_ah = cpu_to_le32(MAX_AH),
        .max_fast_reg_page_list_len = cpu_to_le32(
            rdma_hca_has_mem_mgt(&s->hca) ? VIRTIO_RDMA_MAX_PAGE_LIST : 0),
        .max_pkeys = cpu_to_le16(1),
        .local_ca_ack_delay = CA_ACK_DELAY,
        .max_inline_data = cpu_to_le32(l->max_inline_data),
        .max_mw = cpu_to_le32(l->max_mw),
        .max_mcast_grp = cpu_to_le32(l->max_mcast_grp),
        .max_mcast_qp_attach = cpu_to_le32(l->max_mcast_qp_attach),
        .max_total_mcast_qp_attach = cpu_to_le32(l->max_mcast_grp *
                                                 l->max_mcast_qp_attach),
        .max_srq = cpu_to_le32(s->max_vq_srq),
        .max_srq_wr = cpu_to_le32(l->max_srq_wr),
        .max_srq_sge = cpu_to_le32(l->max_srq_sge),
        .max_reg_pages = cpu_to_le32(l->max_reg_pages),
    };
    if (s->conf.sys_image_guid) {
        stq_be_p(c->sys_image_guid, s->conf.sys_image_guid);
    } else {
        rdma_hca_guid_from_mac(c->sys_image_guid, port.mac);
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)) {
        memcpy(c->mac, port.mac, sizeof(c->mac));
        c->mtu = cpu_to_le16(MIN(port.phys_mtu, UINT16_MAX));
        c->mr_page_sizes = cpu_to_le64(RDMA_HCA_PAGE_SIZES);
        c->max_cqe_deep = cpu_to_le32(l->max_cqe);
        c->num_counters = cpu_to_le32(rdma_hca_has_counters(&s->hca)
                                      ? VIRTIO_RDMA_NUM_COUNTERS : 0);
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT)) {
        c->max_qp_wr_direct = cpu_to_le32(l->max_qp_wr);
        c->max_qp_direct = cpu_to_le32(l->max_qp);
        c->max_cq_direct = cpu_to_le32(l->max_cq);
        c->max_srq_direct = cpu_to_le32(l->max_srq);
    }
}
