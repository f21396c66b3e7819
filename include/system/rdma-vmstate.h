/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * State that a VMStateInfo of the device or of a backend saves and loads by a
 * description of its own, in the form that each series of QEMU wants.
 */
#ifndef SYSTEM_RDMA_VMSTATE_H
#define SYSTEM_RDMA_VMSTATE_H

#include "migration/vmstate.h"
#include "qapi/error.h"

/* An enum, of which the caller checks that it has 4 bytes */
#define VMSTATE_RDMA_ENUM(field_, state) {      \
    .name = #field_,                            \
    .info = &vmstate_info_uint32,               \
    .size = sizeof(uint32_t),                   \
    .flags = VMS_SINGLE,                        \
    .offset = offsetof(state, field_),          \
}

/* A part of the stream that @info_ saves from the whole structure, and loads */
#define VMSTATE_RDMA_PART(name_, info_) {       \
    .name = name_,                              \
    .info = &(info_),                           \
    .flags = VMS_SINGLE,                        \
}

/* vmstate_load_state() of 10.0, and of 10.2 */
typedef int (*RdmaVMStateLoad)(QEMUFile *, const VMStateDescription *, void *,
                               int);
typedef int (*RdmaVMStateLoadErr)(QEMUFile *, const VMStateDescription *,
                                  void *, int, Error **);

static inline int rdma_vmstate_load_plain(void (*load)(void), QEMUFile *f,
                                          const VMStateDescription *vmsd,
                                          void *opaque)
{
    return ((RdmaVMStateLoad)load)(f, vmsd, opaque, vmsd->version_id);
}

static inline int rdma_vmstate_load_err(void (*load)(void), QEMUFile *f,
                                        const VMStateDescription *vmsd,
                                        void *opaque)
{
    Error *err = NULL;
    int ret = ((RdmaVMStateLoadErr)load)(f, vmsd, opaque, vmsd->version_id,
                                         &err);

    if (err) {
        error_report_err(err);
    }
    return ret;
}

/**
 * rdma_vmstate_load: load a structure, of the version that @vmsd has
 *
 * Reports what is wrong. Returns 0, or a negative errno.
 */
static inline int rdma_vmstate_load(QEMUFile *f, const VMStateDescription *vmsd,
                                    void *opaque)
{
    return _Generic(&vmstate_load_state,
                    RdmaVMStateLoad : rdma_vmstate_load_plain,
                    RdmaVMStateLoadErr : rdma_vmstate_load_err)(
        (void (*)(void))vmstate_load_state, f, vmsd, opaque);
}

/* vmstate_save_state() of 10.0, and of 10.2 */
typedef int (*RdmaVMStateSave)(QEMUFile *, const VMStateDescription *, void *,
                               JSONWriter *);
typedef int (*RdmaVMStateSaveErr)(QEMUFile *, const VMStateDescription *,
                                  void *, JSONWriter *, Error **);

static inline int rdma_vmstate_save_plain(void (*save)(void), QEMUFile *f,
                                          const VMStateDescription *vmsd,
                                          void *opaque, JSONWriter *desc)
{
    return ((RdmaVMStateSave)save)(f, vmsd, opaque, desc);
}

static inline int rdma_vmstate_save_err(void (*save)(void), QEMUFile *f,
                                        const VMStateDescription *vmsd,
                                        void *opaque, JSONWriter *desc)
{
    Error *err = NULL;
    int ret = ((RdmaVMStateSaveErr)save)(f, vmsd, opaque, desc, &err);

    if (err) {
        error_report_err(err);
    }
    return ret;
}

/**
 * rdma_vmstate_save: save a structure, with its description in @desc if that
 *                    is not NULL
 *
 * Returns 0, or a negative errno.
 */
static inline int rdma_vmstate_save(QEMUFile *f, const VMStateDescription *vmsd,
                                    void *opaque, JSONWriter *desc)
{
    return _Generic(&vmstate_save_state,
                    RdmaVMStateSave : rdma_vmstate_save_plain,
                    RdmaVMStateSaveErr : rdma_vmstate_save_err)(
        (void (*)(void))vmstate_save_state, f, vmsd, opaque, desc);
}

#endif /* SYSTEM_RDMA_VMSTATE_H */
