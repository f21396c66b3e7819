/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration space: limits of the device, its GUID and port.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "base.h"

/* An EUI-64 made of a MAC address (RFC 4291, appendix A). */
static void guid_from_mac(uint8_t guid[8], const uint8_t mac[RDMA_MAC_LEN])
{
    guid[0] = mac[0] ^ 2;
    guid[1] = mac[1];
    guid[2] = mac[2];
    guid[3] = 0xff;
    guid[4] = 0xfe;
    guid[5] = mac[3];
    guid[6] = mac[4];
    guid[7] = mac[5];
}

void virtio_rdma_config_update(VirtIORdma *s)
{
    RdmaPortAttr port = {};
    VirtIORdmaConfigData data = {
        .limits = &s->hca.limits,
        .page_size_cap = RDMA_PAGE_SIZE,
        .max_vq_qp = s->max_vq_qp,
        .max_vq_cq = s->max_vq_cq,
        .max_vq_srq = s->max_vq_srq,
        .max_page_list_len = rdma_hca_has_mem_mgt(&s->hca)
                             ? VIRTIO_RDMA_MAX_PAGE_LIST : 0,
    };

    s->hca.bc->query_port(s->hca.backend, &port);
    memcpy(s->conf.mac.a, port.mac, sizeof(port.mac));
    if (s->conf.sys_image_guid) {
        stq_be_p(data.sys_image_guid, s->conf.sys_image_guid);
    } else {
        guid_from_mac(data.sys_image_guid, port.mac);
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)) {
        memcpy(data.mac, port.mac, sizeof(data.mac));
        data.mtu = MIN(port.phys_mtu, UINT16_MAX);
        data.mr_page_sizes = RDMA_HCA_PAGE_SIZES;
        data.max_cqe_deep = s->hca.limits.max_cqe_deep;
        data.num_counters = s->hca.bc->query_counters
                            ? VIRTIO_RDMA_NUM_COUNTERS : 0;
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT)) {
        data.max_qp_wr_direct = s->hca.limits.max_qp_wr_direct;
        data.max_qp_direct = s->hca.limits.max_qp;
        data.max_cq_direct = s->hca.limits.max_cq;
        data.max_srq_direct = s->hca.limits.max_srq;
    }
    virtio_rdma_codec_put_config(s->config, &data);
}
