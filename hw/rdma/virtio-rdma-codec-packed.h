/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the packed codec share: access to little-endian fields,
 * and the functions that make up the codec.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_CODEC_PACKED_H
#define HW_RDMA_VIRTIO_RDMA_CODEC_PACKED_H

#include "qemu/bswap.h"
#include "virtio-rdma-codec.h"

/* Field @f of structure @type whose bytes start at @p. */
#define AT(p, type, f)      ((p) + offsetof(struct type, f))
#define GET8(p, type, f)    ldub_p(AT(p, type, f))
#define GET16(p, type, f)   lduw_le_p(AT(p, type, f))
#define GET32(p, type, f)   ldl_le_p(AT(p, type, f))
#define GET64(p, type, f)   ldq_le_p(AT(p, type, f))
#define PUT8(p, type, f, v)     stb_p(AT(p, type, f), v)
#define PUT16(p, type, f, v)    stw_le_p(AT(p, type, f), v)
#define PUT32(p, type, f, v)    stl_le_p(AT(p, type, f), v)
#define PUT64(p, type, f, v)    stq_le_p(AT(p, type, f), v)
#define GET_BYTES(dst, p, type, f) do {                                 \
        QEMU_BUILD_BUG_ON(sizeof(dst) !=                                \
                          sizeof_field(struct type, f));                \
        memcpy(dst, AT(p, type, f), sizeof(dst));                       \
    } while (0)
#define PUT_BYTES(p, type, f, src) do {                                 \
        QEMU_BUILD_BUG_ON(sizeof(src) !=                                \
                          sizeof_field(struct type, f));                \
        memcpy(AT(p, type, f), src, sizeof(src));                       \
    } while (0)

/* Control requests and responses */
extern const VirtIORdmaCmdLayout
    virtio_rdma_packed_cmds[VIRTIO_RDMA_CMD_MAX + 1];
void virtio_rdma_packed_get_request(uint8_t cmd, const uint8_t *p,
                                    VirtIORdmaReq *req);
void virtio_rdma_packed_put_response(uint8_t cmd, uint8_t *p,
                                     const VirtIORdmaRsp *rsp);

/* Work queue elements, completions and events */
void virtio_rdma_packed_get_send(const uint8_t *p, bool ud, RdmaSendWr *wr,
                                 VirtIORdmaPages *pages);
void virtio_rdma_packed_get_recv(const uint8_t *p, RdmaRecvWr *wr);
void virtio_rdma_packed_get_sges(const uint8_t *p, uint32_t n, RdmaSge *sge);
void virtio_rdma_packed_put_cqe(uint8_t *p, const RdmaWc *wc, bool ex);
void virtio_rdma_packed_put_event(uint8_t *p, const RdmaEvent *event);

#endif
