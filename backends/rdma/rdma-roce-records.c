/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: records in numbers, and lists of objects.
 *
 * Work requests come by the thousand, while the guest stands still. Their
 * descriptions say what the stream looks like, but are gone through once for
 * all records of a kind instead of once for each field of each.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/bswap.h"
#include "rdma-roce-vmstate.h"

#define MAX_FIELDS 160
#define CHUNK 8192

typedef enum FieldKind {
    FIELD_NUMBER,
    FIELD_BOOL,
    FIELD_BYTES,
} FieldKind;

typedef struct Layout {
    size_t bytes;                   /* of a record in the stream */
    unsigned n;
    struct {
        size_t offset;
        size_t size;
        FieldKind kind;
    } field[MAX_FIELDS];
} Layout;

static void add_fields(Layout *l, const VMStateDescription *vmsd,
                       size_t offset)
{
    for (const VMStateField *f = vmsd->fields; f->name; f++) {
        size_t at = offset + f->offset;

        if (f->flags == VMS_STRUCT) {
            add_fields(l, f->vmsd, at);
            continue;
        }
        /* Anything else has no place in a record. */
        assert(f->flags == VMS_SINGLE || f->flags == VMS_BUFFER);
        assert(l->n < MAX_FIELDS && !f->field_exists);
        l->field[l->n].offset = at;
        l->field[l->n].size = f->size;
        l->field[l->n].kind = f->flags == VMS_BUFFER ? FIELD_BYTES :
                              f->info == &vmstate_info_bool ? FIELD_BOOL :
                              FIELD_NUMBER;
        l->bytes += f->size;
        l->n++;
    }
}

static uint8_t *encode(const Layout *l, uint8_t *to, const uint8_t *record)
{
    for (unsigned i = 0; i < l->n; i++) {
        const uint8_t *from = record + l->field[i].offset;
        size_t size = l->field[i].size;

        if (l->field[i].kind == FIELD_BYTES || size == 1) {
            memcpy(to, from, size);
        } else if (size == 2) {
            stw_be_p(to, lduw_he_p(from));
        } else if (size == 4) {
            stl_be_p(to, ldl_he_p(from));
        } else {
            stq_be_p(to, ldq_he_p(from));
        }
        to += size;
    }
    return to;
}

static const uint8_t *decode(const Layout *l, const uint8_t *from,
                             uint8_t *record)
{
    for (unsigned i = 0; i < l->n; i++) {
        uint8_t *to = record + l->field[i].offset;
        size_t size = l->field[i].size;

        if (l->field[i].kind == FIELD_BOOL) {
            *(bool *)to = *from != 0;
        } else if (l->field[i].kind == FIELD_BYTES || size == 1) {
            memcpy(to, from, size);
        } else if (size == 2) {
            stw_he_p(to, lduw_be_p(from));
        } else if (size == 4) {
            stl_he_p(to, ldl_be_p(from));
        } else {
            stq_he_p(to, ldq_be_p(from));
        }
        from += size;
    }
    return from;
}

void rdma_roce_put_records(QEMUFile *f, const VMStateDescription *vmsd,
                           const void *records, size_t stride, uint32_t n)
{
    const uint8_t *record = records;
    uint8_t buf[CHUNK];
    Layout l = {};

    if (!n) {
        return;
    }
    add_fields(&l, vmsd, 0);
    while (n) {
        uint32_t some = MIN(n, sizeof(buf) / l.bytes);
        uint8_t *to = buf;

        for (uint32_t i = 0; i < some; i++) {
            to = encode(&l, to, record);
            record += stride;
        }
        qemu_put_buffer(f, buf, to - buf);
        n -= some;
    }
}

int rdma_roce_get_records(QEMUFile *f, const VMStateDescription *vmsd,
                          void *records, size_t stride, uint32_t n)
{
    uint8_t *record = records;
    uint8_t buf[CHUNK];
    Layout l = {};

    if (!n) {
        return 0;
    }
    add_fields(&l, vmsd, 0);
    while (n) {
        uint32_t some = MIN(n, sizeof(buf) / l.bytes);
        const uint8_t *from = buf;

        if (qemu_get_buffer(f, buf, some * l.bytes) != some * l.bytes) {
            return -EIO;
        }
        for (uint32_t i = 0; i < some; i++) {
            from = decode(&l, from, record);
            record += stride;
        }
        n -= some;
    }
    return 0;
}

int rdma_roce_put_objects(QEMUFile *f, RdmaBackend *rb, uint32_t end,
                          bool (*has)(const RoceEngine *e, uint32_t n),
                          int (*put)(QEMUFile *f, RoceEngine *e, uint32_t n))
{
    RoceEngine *e = rdma_roce_engine(rb);
    uint32_t count = 0;
    int ret = 0;

    for (uint32_t n = 0; n < end; n++) {
        count += has(e, n);
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 0; n < end && !ret; n++) {
        if (has(e, n)) {
            ret = put(f, e, n);
        }
    }
    return ret;
}

int rdma_roce_get_objects(QEMUFile *f, RdmaBackend *rb,
                          int (*get)(QEMUFile *f, RdmaBackend *rb))
{
    uint32_t count = qemu_get_be32(f);
    int ret = 0;

    /* One too many has a number that is in use. */
    for (uint32_t i = 0; i < count && !ret; i++) {
        ret = get(f, rb);
    }
    return ret;
}
