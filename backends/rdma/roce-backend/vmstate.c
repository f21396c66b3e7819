/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: GIDs, the engine's objects by kind, and
 * multicast groups. The device migrates counters.
 */
#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "rdma/roce-state.h"
#include "vmstate.h"

/* Lists of objects */

int rdma_roce_put_objects(QEMUFile *f, void *pv, size_t size,
                          const VMStateField *field, JSONWriter *vmdesc)
{
    const RoceObjectList *list = container_of(field->info, RoceObjectList,
                                              info);
    RoceEngine *e = rdma_roce_engine(pv);
    uint32_t count = 0;
    int ret = 0;

    for (uint32_t n = 0; list->next(e, &n); n++) {
        count++;
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 0; !ret && list->next(e, &n); n++) {
        ret = list->put(f, pv, n);
    }
    return ret;
}

int rdma_roce_get_objects(QEMUFile *f, void *pv, size_t size,
                          const VMStateField *field)
{
    const RoceObjectList *list = container_of(field->info, RoceObjectList,
                                              info);
    uint32_t count = qemu_get_be32(f);
    int ret = 0;

    /* The count needs no check: the engine refuses a number that is in use. */
    for (uint32_t i = 0; i < count && !ret; i++) {
        g_autofree char *why = NULL;
        uint32_t n;

        ret = list->get(f, pv, &n, &why);
        if (why) {
            error_report("rdma-roce: bad %s %u in the migration stream: %s",
                         list->kind, n, why);
        }
    }
    return ret;
}

/* GIDs */

static int put_gids(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint8_t gid[RDMA_GID_LEN];
    uint32_t count = 0;
    uint16_t vlan;

    for (uint32_t n = 0; n < rb->limits.gid_table_len; n++) {
        count += roce_get_gid(e, n, gid, &vlan);
    }
    qemu_put_be32(f, count);
    for (uint32_t n = 0; n < rb->limits.gid_table_len; n++) {
        if (roce_get_gid(e, n, gid, &vlan)) {
            qemu_put_be32(f, n);
            qemu_put_buffer(f, gid, sizeof(gid));
            qemu_put_be16(f, vlan);
        }
    }
    return 0;
}

static int get_gids(QEMUFile *f, void *pv, size_t size,
                    const VMStateField *field)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint32_t count = qemu_get_be32(f);

    if (count > rb->limits.gid_table_len) {
        error_report("rdma-roce: %u GIDs in the migration stream, but "
                     "gid-table-len is %u", count, rb->limits.gid_table_len);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = qemu_get_be32(f);
        uint8_t gid[RDMA_GID_LEN];
        bool ok = qemu_get_buffer(f, gid, sizeof(gid)) == sizeof(gid);
        uint16_t vlan = qemu_get_be16(f);

        if (!ok) {
            return -EIO;
        }
        if (index >= rb->limits.gid_table_len) {
            error_report("rdma-roce: a GID with index %u in the migration "
                         "stream, but gid-table-len is %u", index,
                         rb->limits.gid_table_len);
            return -EINVAL;
        }
        if (!rb->client_ops->gid_allowed(rb->client_opaque, gid)) {
            error_report("rdma-roce: GID %u in the migration stream is not in "
                         "allowed-gids", index);
            return -EINVAL;
        }
        if (roce_add_gid(e, index, gid, vlan)) {
            error_report("rdma-roce: GID %u in the migration stream, of VLAN "
                         "%u, is not a unicast GID, or the VLAN is above %u",
                         index, vlan, RDMA_MAX_VLAN);
            return -EINVAL;
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_gids = {
    .name = "rdma-roce GIDs",
    .get = get_gids,
    .put = put_gids,
};

/* Multicast groups */

static int put_mcast(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaBackend *rb = pv;
    RoceEngine *e = rdma_roce_engine(rb);
    uint32_t max = rb->limits.max_mcast_grp;
    g_autofree uint8_t (*gids)[RDMA_GID_LEN] = g_malloc_n(max, sizeof(*gids));

    for (uint32_t qpn = 0; roce_next_qp(e, &qpn); qpn++) {
        uint32_t n = roce_get_mcast(e, qpn, gids, max);

        if (n) {
            qemu_put_be32(f, qpn);
            qemu_put_be32(f, n);
            qemu_put_buffer(f, gids[0], n * sizeof(*gids));
        }
    }
    /* The end of the list, as QP 0 is in no group */
    qemu_put_be32(f, RDMA_QPN_SMI);
    return 0;
}

static int get_mcast(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    RoceEngine *e = rdma_roce_engine(pv);
    uint8_t gid[RDMA_GID_LEN];
    uint32_t qpn;

    while ((qpn = qemu_get_be32(f)) != RDMA_QPN_SMI) {
        uint32_t n = qemu_get_be32(f);

        for (uint32_t i = 0; i < n; i++) {
            int ret;

            if (qemu_get_buffer(f, gid, sizeof(gid)) != sizeof(gid)) {
                return -EIO;
            }
            ret = roce_mcast_attach(e, qpn, gid);
            if (ret) {
                error_report("rdma-roce: queue pair %u in the migration stream "
                             "cannot be in its multicast group %u of %u: %s",
                             qpn, i + 1, n, strerror(-ret));
                return -EINVAL;
            }
        }
    }
    return 0;
}

static const VMStateInfo vmstate_info_mcast = {
    .name = "rdma-roce multicast groups",
    .get = get_mcast,
    .put = put_mcast,
};

static int roce_pre_load(void *opaque)
{
    roce_reset(rdma_roce_engine(opaque));
    return 0;
}

const VMStateDescription vmstate_rdma_roce = {
    .name = "rdma-roce",
    .version_id = 2,
    .minimum_version_id = 2,
    .pre_load = roce_pre_load,
    .fields = (const VMStateField[]) {
        VMSTATE_RDMA_PART("gids", vmstate_info_gids),
        VMSTATE_RDMA_PART("mrs", rdma_roce_mrs.info),
        VMSTATE_RDMA_PART("srqs", rdma_roce_srqs.info),
        VMSTATE_RDMA_PART("qps", rdma_roce_qps.info),
        VMSTATE_RDMA_PART("mcast", vmstate_info_mcast),
        VMSTATE_RDMA_PART("mws", rdma_roce_mws.info),
        VMSTATE_END_OF_LIST()
    },
};
