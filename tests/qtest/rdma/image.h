/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TESTS_QTEST_RDMA_IMAGE_H
#define TESTS_QTEST_RDMA_IMAGE_H

#include "libqtest.h"

/* Add an empty disk for snapshots of savevm, in the new file @path. */
void test_image_add(QTestState *qts, const char *path);

#endif /* TESTS_QTEST_RDMA_IMAGE_H */
