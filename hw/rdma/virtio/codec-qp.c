/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma-commands.rst: the attributes of a QP.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "codec.h"

/* A field that guest and host have, of the same name and size */
typedef struct Field {
    uint16_t at;
    uint16_t host_at;
    uint16_t size;                  /* more than 4: an array of bytes */
} Field;

#define SIZE(f) sizeof_field(struct virtio_rdma_qp_attr, f)
#define HOST_SIZE(f) sizeof_field(RdmaQpAttr, f)
#define FIELD(f) {                                                      \
    offsetof(struct virtio_rdma_qp_attr, f), offsetof(RdmaQpAttr, f),   \
    SIZE(f) + QEMU_BUILD_BUG_ON_ZERO(SIZE(f) != HOST_SIZE(f)),          \
}

static const Field fields[] = {
    FIELD(qp_state),
    FIELD(cur_qp_state),
    FIELD(path_mtu),
    FIELD(path_mig_state),
    FIELD(qkey),
    FIELD(rq_psn),
    FIELD(sq_psn),
    FIELD(dest_qp_num),
    FIELD(qp_access_flags),
    FIELD(pkey_index),
    FIELD(alt_pkey_index),
    FIELD(en_sqd_async_notify),
    FIELD(sq_draining),
    FIELD(max_rd_atomic),
    FIELD(max_dest_rd_atomic),
    FIELD(min_rnr_timer),
    FIELD(port_num),
    FIELD(timeout),
    FIELD(retry_cnt),
    FIELD(rnr_retry),
    FIELD(alt_port_num),
    FIELD(alt_timeout),
    FIELD(rate_limit),
    FIELD(cap.max_send_wr),
    FIELD(cap.max_recv_wr),
    FIELD(cap.max_send_sge),
    FIELD(cap.max_recv_sge),
    FIELD(cap.max_inline_data),
    FIELD(ah_attr.dgid),
    FIELD(ah_attr.dmac),
    FIELD(ah_attr.flow_label),
    FIELD(ah_attr.sgid_index),
    FIELD(ah_attr.hop_limit),
    FIELD(ah_attr.traffic_class),
    FIELD(ah_attr.sl),
    FIELD(ah_attr.static_rate),
    FIELD(ah_attr.port_num),
    FIELD(ah_attr.ah_flags),
    FIELD(alt_ah_attr.dgid),
    FIELD(alt_ah_attr.dmac),
    FIELD(alt_ah_attr.flow_label),
    FIELD(alt_ah_attr.sgid_index),
    FIELD(alt_ah_attr.hop_limit),
    FIELD(alt_ah_attr.traffic_class),
    FIELD(alt_ah_attr.sl),
    FIELD(alt_ah_attr.static_rate),
    FIELD(alt_ah_attr.port_num),
    FIELD(alt_ah_attr.ah_flags),
};

void virtio_rdma_codec_get_qp_attr(const struct virtio_rdma_qp_attr *p,
                                   RdmaQpAttr *attr)
{
    for (const Field *f = fields; f < fields + ARRAY_SIZE(fields); f++) {
        const uint8_t *from = (const uint8_t *)p + f->at;
        uint8_t *to = (uint8_t *)attr + f->host_at;

        if (f->size > sizeof(uint32_t)) {
            memcpy(to, from, f->size);
        } else {
            stn_he_p(to, f->size, ldn_le_p(from, f->size));
        }
    }
}

void virtio_rdma_codec_put_qp_attr(struct virtio_rdma_qp_attr *p,
                                   const RdmaQpAttr *attr)
{
    for (const Field *f = fields; f < fields + ARRAY_SIZE(fields); f++) {
        const uint8_t *from = (const uint8_t *)attr + f->host_at;
        uint8_t *to = (uint8_t *)p + f->at;

        if (f->size > sizeof(uint32_t)) {
            memcpy(to, from, f->size);
        } else {
            stn_le_p(to, f->size, ldn_he_p(from, f->size));
        }
    }
}
