/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma.rst: configuration space.
 */
#include "qemu/osdep.h"
#include "codec-field.h"

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

void virtio_rdma_codec_put_config(uint8_t *p, const VirtIORdmaConfigData *data)
{
    const RdmaBackendLimits *l = data->limits;
    uint32_t max_rd = l->max_rd_atomic;

    memset(p, 0, sizeof(struct virtio_rdma_config));
    PUT32(p, virtio_rdma_config, phys_port_cnt, 1);
    PUT_BYTES(p, virtio_rdma_config, sys_image_guid, data->sys_image_guid);
    PUT32(p, virtio_rdma_config, vendor_id, VENDOR_ID);
    PUT32(p, virtio_rdma_config, vendor_part_id, VENDOR_PART_ID);
    PUT32(p, virtio_rdma_config, hw_ver, HW_VERSION);
    PUT64(p, virtio_rdma_config, max_mr_size, l->max_mr_size);
    PUT64(p, virtio_rdma_config, page_size_cap, data->page_size_cap);
    PUT32(p, virtio_rdma_config, max_qp, data->max_vq_qp);
    PUT32(p, virtio_rdma_config, max_qp_wr, l->max_qp_wr);
    PUT64(p, virtio_rdma_config, device_cap_flags, l->device_cap_flags);
    PUT32(p, virtio_rdma_config, max_send_sge, l->max_send_sge);
    PUT32(p, virtio_rdma_config, max_recv_sge, l->max_recv_sge);
    PUT32(p, virtio_rdma_config, max_sge_rd, l->max_send_sge);
    PUT32(p, virtio_rdma_config, max_cq, data->max_vq_cq);
    PUT32(p, virtio_rdma_config, max_cqe, l->max_cqe);
    PUT32(p, virtio_rdma_config, max_mr, l->max_mr);
    PUT32(p, virtio_rdma_config, max_pd, l->max_pd);
    PUT32(p, virtio_rdma_config, max_qp_rd_atom, max_rd);
    PUT32(p, virtio_rdma_config, max_res_rd_atom, max_rd * l->max_qp);
    PUT32(p, virtio_rdma_config, max_qp_init_rd_atom, max_rd);
    PUT8(p, virtio_rdma_config, atomic_cap, l->atomic_cap);
    PUT32(p, virtio_rdma_config, max_ah, MAX_AH);
    PUT32(p, virtio_rdma_config, max_fast_reg_page_list_len,
          data->max_page_list_len);
    PUT16(p, virtio_rdma_config, max_pkeys, 1);
    PUT8(p, virtio_rdma_config, local_ca_ack_delay, CA_ACK_DELAY);
    PUT_BYTES(p, virtio_rdma_config, mac, data->mac);
    PUT16(p, virtio_rdma_config, mtu, data->mtu);
    PUT32(p, virtio_rdma_config, max_inline_data, l->max_inline_data);
    PUT32(p, virtio_rdma_config, max_mw, l->max_mw);
    PUT32(p, virtio_rdma_config, max_mcast_grp, l->max_mcast_grp);
    PUT32(p, virtio_rdma_config, max_mcast_qp_attach, l->max_mcast_qp_attach);
    PUT32(p, virtio_rdma_config, max_total_mcast_qp_attach,
          l->max_mcast_grp * l->max_mcast_qp_attach);
    PUT32(p, virtio_rdma_config, max_srq, data->max_vq_srq);
    PUT32(p, virtio_rdma_config, max_srq_wr, l->max_srq_wr);
    PUT32(p, virtio_rdma_config, max_srq_sge, l->max_srq_sge);
    PUT32(p, virtio_rdma_config, max_cqe_deep, data->max_cqe_deep);
    PUT32(p, virtio_rdma_config, num_counters, data->num_counters);
    PUT64(p, virtio_rdma_config, mr_page_sizes, data->mr_page_sizes);
    PUT32(p, virtio_rdma_config, max_reg_pages, l->max_reg_pages);
    PUT32(p, virtio_rdma_config, max_qp_direct, data->max_qp_direct);
    PUT32(p, virtio_rdma_config, max_qp_wr_direct, data->max_qp_wr_direct);
    PUT32(p, virtio_rdma_config, max_cq_direct, data->max_cq_direct);
    PUT32(p, virtio_rdma_config, max_srq_direct, data->max_srq_direct);
}
