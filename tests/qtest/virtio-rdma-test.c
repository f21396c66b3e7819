/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of one virtio-rdma device: its behaviour towards drivers, also towards
 * drivers with errors. The tests are in tests/qtest/rdma.
 */
#include "qemu/osdep.h"
#include "rdma/rdma-test.h"

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("virtio-rdma/alloc/", alloc_tests);
    qrdma_add_tests("virtio-rdma/bring-up/", bringup_tests);
    qrdma_add_tests("virtio-rdma/config/", config_tests);
    test_add_layouts("virtio-rdma/ctrl/", ctrl_tests);
    test_add_layouts("virtio-rdma/object/", object_tests);
    qrdma_add_tests("virtio-rdma/mcast/", mcast_tests);
    test_add_layouts("virtio-rdma/mr/", mr_tests);
    qrdma_add_tests("virtio-rdma/", mr_table_tests);
    add_memory_tests();
    qrdma_add_tests("virtio-rdma/mw/", mw_tests);
    qrdma_add_tests("virtio-rdma/reg-pages/", reg_pages_tests);
    test_add_layouts("virtio-rdma/qp/", qp_tests);
    test_add_layouts("virtio-rdma/", gid_tests);
    qrdma_add_tests("virtio-rdma/guest-error/", guest_error_tests);
    qrdma_add_tests("virtio-rdma/packed/", packed_tests);
    qrdma_add_tests("virtio-rdma/reset/", reset_tests);
    test_add_layouts("virtio-rdma/ring/", ring_tests);
    qrdma_add_tests("virtio-rdma/srq/", srq_tests);
    test_add_layouts("virtio-rdma/wqe/", wqe_tests);
    qrdma_add_tests("virtio-rdma/direct-cq/", direct_cq_tests);
    qrdma_add_tests("virtio-rdma/qp-counters/", qp_counters_tests);
    test_add_layouts("virtio-rdma/notify/", notify_tests);
    qrdma_add_tests("virtio-rdma/", cq_tests);
    add_eject_tests();
    if (!qrdma_ibdev()) {
        /* The layout of the demo needs numbers of its own */
        qrdma_add_tests("virtio-rdma/demo/", demo_tests);
        /* On a host's device QPs work the same, and receives are not fetched */
        qrdma_add_tests("virtio-rdma/direct/", direct_tests);
        qrdma_add_tests("virtio-rdma/direct/", direct_recv_tests);
        qrdma_add_tests("virtio-rdma/direct-srq/", direct_srq_tests);
        qrdma_add_tests("virtio-rdma/shadow/", shadow_tests);
        add_sq_poll_tests();
        /* rdma-verbs refuses an iothread */
        qrdma_add_tests("virtio-rdma/iothread/", iothread_tests);
    }
    qrdma_add_tests("virtio-rdma/event/", event_tests);
    qrdma_add_tests("virtio-rdma/life/", lifecycle_tests);
    qrdma_add_tests("virtio-rdma/random/", random_tests);
    qrdma_add_tests("virtio-rdma/realize/", realize_tests);
    qrdma_add_tests("virtio-rdma/features/", features_tests);
    add_flavour_tests();
    qrdma_add_tests("/virtio-rdma/turn/", turn_tests);
    qrdma_add_tests("/virtio-rdma/", nested_tests);
    qrdma_add_tests("/virtio-rdma/nested/", nested_loop_tests);
    ret = g_test_run();
    test_device_quit();
    return ret;
}
