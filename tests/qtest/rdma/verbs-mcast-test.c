/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rdma-verbs: multicast groups, whose number a host limits for all guests. */
#include "qemu/osdep.h"
#include "verbs-test.h"

static const uint8_t groups[3][RDMA_GID_LEN] = {
    { 0xff, 0x0e, [15] = 1 },
    { 0xff, 0x0e, [15] = 2 },
    { 0xff, 0x0e, [15] = 3 },
};

static void test_qp_that_goes(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    for (int i = 0; i < 3; i++) {
        assert_ok(qrdma_attach_mcast(p.a, groups[i]));
        assert_ok(qrdma_attach_mcast(p.b, groups[i]));
    }
    verbs_await_count(v, "mcast", 6);
    assert_ok(qrdma_detach_mcast(p.a, groups[1]));
    assert_ok(qrdma_destroy_qp(p.a));
    verbs_await_count(v, "mcast", 3);
    qrdma_reset(v->dev);
    verbs_await_clean(v);
    verbs_restart(v);
}

static void test_once(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    assert_status(qrdma_detach_mcast(p.a, groups[0]), INVAL);
    assert_ok(qrdma_attach_mcast(p.a, groups[0]));
    assert_status(qrdma_attach_mcast(p.a, groups[0]), INVAL);
    assert_status(qrdma_detach_mcast(p.b, groups[0]), INVAL);
    assert_ok(qrdma_detach_mcast(p.a, groups[0]));
    assert_status(qrdma_detach_mcast(p.a, groups[0]), INVAL);
}

/* The backend enforces the limits, even if the host would allow more. */
static void test_limits(void)
{
    g_autoptr(Verbs) v =
        verbs_new("attr max_mcast_grp 2; attr max_mcast_qp_attach 1");
    VerbsPair p;

    fake_verbs_tell(v->fake, "attr max_mcast_grp 100");
    fake_verbs_tell(v->fake, "attr max_mcast_qp_attach 100");
    p = verbs_pair(v, RDMA_QPT_UD);
    assert_ok(qrdma_attach_mcast(p.a, groups[0]));
    assert_status(qrdma_attach_mcast(p.b, groups[0]), NOMEM);
    assert_ok(qrdma_attach_mcast(p.b, groups[1]));
    assert_status(qrdma_attach_mcast(p.b, groups[2]), NOMEM);
    assert_ok(qrdma_destroy_qp(p.a));
    assert_ok(qrdma_attach_mcast(p.b, groups[2]));
    assert_status(qrdma_attach_mcast(p.b, groups[0]), NOMEM);
}

/* An attachment that the host does not detach stays counted. */
static void test_host_refuses(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    fake_verbs_tell(v->fake, "fail attach_mcast ENOMEM");
    assert_status(qrdma_attach_mcast(p.a, groups[0]), NOMEM);
    assert_ok(qrdma_attach_mcast(p.a, groups[0]));
    fake_verbs_tell(v->fake, "fail detach_mcast EBUSY");
    assert_status(qrdma_destroy_qp(p.a), BUSY);
    verbs_await_count(v, "mcast", 1);
    assert_ok(qrdma_destroy_qp(p.a));
    verbs_await_count(v, "mcast", 0);
}

const QRdmaTest verbs_mcast_tests[] = {
    { "qp-that-goes", test_qp_that_goes },
    { "once", test_once },
    { "limits", test_limits },
    { "host-refuses", test_host_refuses },
    {}
};
