/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces of QEMU that differ between the supported series. Handle further
 * differences in this file, so that its users need no conditions.
 */
#ifndef SYSTEM_RDMA_SERIES_H
#define SYSTEM_RDMA_SERIES_H

#include "qom/object.h"

/* TypeInfo.class_init() of 10.0, and of 10.2 */
typedef void (*RdmaClassInit)(ObjectClass *, void *);
typedef void (*RdmaConstClassInit)(ObjectClass *, const void *);

/**
 * RdmaClassData: second argument of TypeInfo.class_init()
 */
typedef typeof(_Generic(((TypeInfo *)0)->class_init,
                        RdmaClassInit : (void *)0,
                        RdmaConstClassInit : (const void *)0)) RdmaClassData;

#endif /* SYSTEM_RDMA_SERIES_H */
