/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For the files of the codec: access to little-endian fields of the structures
 * of the guest ABI
 */
#ifndef HW_RDMA_VIRTIO_CODEC_FIELD_H
#define HW_RDMA_VIRTIO_CODEC_FIELD_H

#include "qemu/bswap.h"
#include "codec.h"

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

#endif
