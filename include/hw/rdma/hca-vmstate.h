/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the HCA core, for guest interfaces.
 *
 * The core saves the table of each kind of object: the number of objects, and
 * for each one its number, the core's fields, and the fields of the guest
 * interface (RdmaHcaObjectOps). The stream is not trusted, as the guest is not.
 * Numbers, references and limits are checked; pointers and counts of users are
 * computed.
 */
#ifndef HW_RDMA_HCA_VMSTATE_H
#define HW_RDMA_HCA_VMSTATE_H

#include "hw/rdma/hca.h"
#include "system/rdma-vmstate.h"

/*
 * The core's part of the stream: objects, events, the backend, and counters. It
 * can come to a device in any state. If it is refused, the core is reset.
 */
extern const VMStateInfo vmstate_info_rdma_hca;
#define VMSTATE_RDMA_HCA(field, state) \
    VMSTATE_SINGLE(field, state, 0, vmstate_info_rdma_hca, RdmaHca)

/*
 * The limits, which the guest has read: the destination must have the same. Put
 * this into a description with early_setup, so that migration fails before the
 * guest is stopped.
 */
extern const VMStateInfo vmstate_info_rdma_hca_limits;
#define VMSTATE_RDMA_HCA_LIMITS(field, state) \
    VMSTATE_SINGLE(field, state, 0, vmstate_info_rdma_hca_limits, RdmaHca)

/*
 * An integer that must be the same at the destination, such as the value of the
 * property @prop_. The stream is that of VMSTATE_UINT64_EQUAL() and the like.
 */
extern const VMStateInfo vmstate_info_rdma_equal;
#define VMSTATE_RDMA_EQUAL(prop_, field_, state_) {                     \
    .name = prop_,                                                      \
    .info = &vmstate_info_rdma_equal,                                   \
    .size = sizeof_field(state_, field_),                               \
    .flags = VMS_SINGLE,                                                \
    .offset = offsetof(state_, field_),                                 \
}

/*
 * The pages of a queue in memory of the driver, or none. The guest interface
 * checks the number, and charges the pages: see rdma_hca_record_charge().
 */
extern const VMStateInfo vmstate_info_rdma_hca_pages;
#define VMSTATE_RDMA_HCA_PAGES(field, state) \
    VMSTATE_SINGLE(field, state, 0, vmstate_info_rdma_hca_pages, RdmaHcaExtents)

/* An object of the stream, for error messages: its kind, and its number */
struct RdmaHcaRecord {
    const char *kind;
    uint32_t id;
};

/* If not @ok, report that the field of @r must be @must. Returns @ok. */
bool rdma_hca_record_check(const RdmaHcaRecord *r, bool ok, const char *field,
                           uint64_t value, const char *must);
/* Report if the field of @r is greater than @max. Returns whether it is not. */
bool rdma_hca_record_max(const RdmaHcaRecord *r, const char *field,
                         uint64_t value, uint64_t max);
/*
 * Check the addresses of the pages of a queue, and add their number to
 * hca->charged_pages. Whether pages are RAM is checked at each use.
 */
bool rdma_hca_record_charge(RdmaHca *hca, const RdmaHcaRecord *r,
                            const RdmaHcaExtents *x);

/*
 * The guest interface refuses the stream after the core has loaded its part:
 * reset the core.
 */
void rdma_hca_forget_loaded(RdmaHca *hca);

/*
 * Why the state must not be saved, or NULL. QEMU itself checks that when the
 * migration is its own.
 */
Error *rdma_hca_migration_blocker(const RdmaHca *hca);

#endif
