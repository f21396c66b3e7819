/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the series of QEMU that this tree lies over have in different forms. One
 * that differs in more adds to this file, not a condition to where it is used.
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
