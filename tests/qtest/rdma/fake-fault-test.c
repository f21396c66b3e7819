/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs does what the test asks it to.
 */
#include "qemu/osdep.h"
#include "fake-test.h"

/* Calls that fail as they are told to; each returns an errno. */

static End *victim;

static int of_pointer(void *result)
{
    g_assert_null(result);
    return errno;
}

static int try_open_device(void)
{
    return of_pointer(ibv_open_device(victim->ctx->device));
}

static int try_get_device_list(void)
{
    return of_pointer(ibv_get_device_list(NULL));
}

static int try_query_device(void)
{
    struct ibv_device_attr attr;

    return ibv_query_device(victim->ctx, &attr);
}

static int try_query_port(void)
{
    struct ibv_port_attr attr;

    return ibv_query_port(victim->ctx, 1, &attr);
}

static int try_query_gid(void)
{
    union ibv_gid gid;

    return ibv_query_gid(victim->ctx, 1, 0, &gid) ? errno : 0;
}

static int try_query_gid_ex(void)
{
    struct ibv_gid_entry entry;

    return ibv_query_gid_ex(victim->ctx, 1, 0, &entry, 0);
}

static int try_query_gid_table(void)
{
    struct ibv_gid_entry entries[FAKE_IBVERBS_GIDS];

    return -ibv_query_gid_table(victim->ctx, entries, FAKE_IBVERBS_GIDS, 0);
}

static int try_alloc_pd(void)
{
    return of_pointer(ibv_alloc_pd(victim->ctx));
}

static int try_dealloc_pd(void)
{
    return ibv_dealloc_pd(victim->pd);
}

static int try_reg_mr(void)
{
    return of_pointer(ibv_reg_mr(victim->pd, victim->buf, 1, 0));
}

static int try_reg_mr_iova2(void)
{
    return of_pointer(ibv_reg_mr_iova2(victim->pd, victim->buf, 1, 0, 0));
}

static int try_rereg_mr(void)
{
    return ibv_rereg_mr(victim->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
                        0, 0) ? errno : 0;
}

static int try_dereg_mr(void)
{
    return ibv_dereg_mr(victim->mr);
}

static int try_alloc_mw(void)
{
    return of_pointer(ibv_alloc_mw(victim->pd, IBV_MW_TYPE_2));
}

static int try_create_comp_channel(void)
{
    return of_pointer(ibv_create_comp_channel(victim->ctx));
}

static int try_create_cq(void)
{
    return of_pointer(ibv_create_cq(victim->ctx, 1, NULL, NULL, 0));
}

static int try_resize_cq(void)
{
    return ibv_resize_cq(victim->cq, 64);
}

static int try_req_notify_cq(void)
{
    return ibv_req_notify_cq(victim->cq, 0);
}

static int try_poll_cq(void)
{
    struct ibv_wc wc;

    return -ibv_poll_cq(victim->cq, 1, &wc);
}

static int try_destroy_cq(void)
{
    return ibv_destroy_cq(victim->cq);
}

static int try_create_srq(void)
{
    struct ibv_srq_init_attr init = { .attr = { 1, 1, 0 } };

    return of_pointer(ibv_create_srq(victim->pd, &init));
}

static int try_create_qp(void)
{
    return of_pointer(new_qp(victim, IBV_QPT_RC, NULL));
}

static int try_modify_qp(void)
{
    return to_init(victim->qp);
}

static int try_query_qp(void)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return ibv_query_qp(victim->qp, &attr, 0, &init);
}

static int try_destroy_qp(void)
{
    return ibv_destroy_qp(victim->qp);
}

static int try_post_send(void)
{
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);

    return send_wr(victim, &wr);
}

static int try_post_recv(void)
{
    return recv_at(victim, 1, 0, 1);
}

static int try_create_ah(void)
{
    struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

    return of_pointer(ibv_create_ah(victim->pd, &attr));
}

static int try_attach_mcast(void)
{
    union ibv_gid group = { .raw = { 0xff } };

    return ibv_attach_mcast(victim->qp, &group, 0);
}

static void test_failures(void)
{
#define TRY(verb) { #verb, try_##verb }
    static const struct {
        const char *verb;
        int (*call)(void);
    } tries[] = {
        TRY(open_device), TRY(get_device_list), TRY(query_device),
        TRY(query_port), TRY(query_gid), TRY(query_gid_ex),
        TRY(query_gid_table), TRY(alloc_pd), TRY(dealloc_pd), TRY(reg_mr),
        TRY(reg_mr_iova2), TRY(rereg_mr), TRY(dereg_mr), TRY(alloc_mw),
        TRY(create_comp_channel), TRY(create_cq), TRY(resize_cq),
        TRY(req_notify_cq), TRY(poll_cq), TRY(destroy_cq), TRY(create_srq),
        TRY(create_qp), TRY(modify_qp), TRY(query_qp), TRY(destroy_qp),
        TRY(post_send), TRY(post_recv), TRY(create_ah), TRY(attach_mcast),
    };
#undef TRY
    static const struct {
        const char *name;
        int err;
    } errors[] = { { "ENOMEM", ENOMEM }, { "EINVAL", EINVAL },
                   { "EPERM", EPERM }, { "EIO", EIO }, { "101", 101 } };
    g_autofree char *before = NULL;
    End e = end_new(IBV_QPT_RC);

    victim = &e;
    before = fake_verbs_ask(fake, "count");
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(errors); j++) {
            g_autofree char *after = NULL;
            unsigned calls = fake_verbs_calls(fake, tries[i].verb);

            fake_verbs_tell(fake, "fail %s %s times 2", tries[i].verb,
                            errors[j].name);
            g_assert_cmpint(tries[i].call(), ==, errors[j].err);
            g_assert_cmpint(tries[i].call(), ==, errors[j].err);
            g_assert_cmpint(fake_verbs_calls(fake, tries[i].verb), ==,
                            calls + 2);
            after = fake_verbs_ask(fake, "count");
            g_assert_cmpstr(after, ==, before);
        }
    }
    fake_verbs_tell(fake, "fail query_port EACCES after 1");
    g_assert_cmpint(try_query_port(), ==, 0);
    g_assert_cmpint(try_query_port(), ==, EACCES);
    g_assert_cmpint(try_query_port(), ==, 0);
    fake_verbs_tell(fake, "fail query_port EACCES times 0");
    g_assert_cmpint(try_query_port(), ==, EACCES);
    g_assert_cmpint(try_query_port(), ==, EACCES);
    fake_verbs_tell(fake, "forget query_port");
    g_assert_cmpint(try_query_port(), ==, 0);
    end_free(&e);
}

static void test_limits(void)
{
    End e = end_new(IBV_QPT_RC);

    victim = &e;
    fake_verbs_tell(fake, "attr max_qp 1");
    g_assert_cmpint(try_create_qp(), ==, ENOMEM);
    fake_verbs_tell(fake, "attr max_qp 1024");
    fake_verbs_tell(fake, "attr max_mr 1");
    g_assert_cmpint(try_reg_mr(), ==, ENOMEM);
    fake_verbs_tell(fake, "attr max_mr 4096");
    end_free(&e);
}

static gpointer register_late(gpointer opaque)
{
    End *e = opaque;

    return ibv_reg_mr(e->pd, e->buf, SIZE, 0);
}

static void test_delay(void)
{
    End e = end_new(IBV_QPT_RC);
    GThread *thread;
    struct ibv_mr *mr;

    fake_verbs_tell(fake, "delay reg_mr");
    thread = g_thread_new("late", register_late, &e);
    fake_verbs_tell(fake, "await reg_mr");
    g_assert_cmpint(fake_verbs_count(fake, "mr"), ==, 1);
    /* other verbs go on meanwhile */
    g_assert_cmpint(to_init(e.qp), ==, 0);
    fake_verbs_tell(fake, "release reg_mr");
    mr = g_thread_join(thread);
    g_assert_nonnull(mr);
    g_assert_cmpint(ibv_dereg_mr(mr), ==, 0);

    /* it may fail when it has waited */
    fake_verbs_tell(fake, "delay reg_mr");
    thread = g_thread_new("late", register_late, &e);
    fake_verbs_tell(fake, "await reg_mr 1");
    fake_verbs_tell(fake, "fail reg_mr ENOMEM");
    fake_verbs_tell(fake, "release");
    g_assert_null(g_thread_join(thread));
    end_free(&e);
}

static void test_by_hand(void)
{
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);
    struct ibv_wc wc;
    End a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    fake_verbs_tell(fake, "auto off");
    g_assert_cmpint(recv_at(&b, 7, 0, 1), ==, 0);
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    wr.wr_id = 2;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_nothing(&a);
    fake_verbs_tell(fake, "complete 0x%x send", a.qp->qp_num);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    expect_nothing(&a);
    fake_verbs_tell(fake, "complete 0x%x send RNR_RETRY_EXC_ERR",
                    a.qp->qp_num);
    expect_wc(&a, 2, IBV_WC_RNR_RETRY_EXC_ERR);
    g_free(fake_verbs_refuses(fake, "complete 0x1 send"));
    fake_verbs_tell(fake, "complete 0x%x recv", b.qp->qp_num);
    expect_wc(&b, 7, IBV_WC_SUCCESS);
    fake_verbs_tell(fake, "wc 0x%x wr_id=9 qp_num=0x77 status=GENERAL_ERR "
                    "vendor_err=3", a.cq->handle);
    wc = next_wc(&a);
    g_assert_cmpint(wc.wr_id, ==, 9);
    g_assert_cmpint(wc.qp_num, ==, 0x77);
    g_assert_cmpint(wc.status, ==, IBV_WC_GENERAL_ERR);
    g_assert_cmpint(wc.vendor_err, ==, 3);
    fake_verbs_tell(fake, "auto on");
    end_free(&a);
    end_free(&b);
}

static gpointer destroy_late(gpointer opaque)
{
    return GINT_TO_POINTER(ibv_destroy_qp(opaque));
}

static void test_events(void)
{
    struct ibv_async_event event;
    struct ibv_port_attr port;
    GThread *thread;
    End e = end_new(IBV_QPT_RC);

    g_assert_false(readable(e.ctx->async_fd));
    fake_verbs_tell(fake, "port down");
    event = next_event(e.ctx, IBV_EVENT_PORT_ERR);
    g_assert_cmpint(event.element.port_num, ==, 1);
    ibv_ack_async_event(&event);
    g_assert_cmpint(ibv_query_port(e.ctx, 1, &port), ==, 0);
    g_assert_cmpint(port.state, ==, IBV_PORT_DOWN);
    fake_verbs_tell(fake, "port up");
    event = next_event(e.ctx, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
    g_assert_false(readable(e.ctx->async_fd));

    /* an event that was read keeps the object until it is acknowledged */
    fake_verbs_tell(fake, "event QP_FATAL 0x%x", e.qp->qp_num);
    event = next_event(e.ctx, IBV_EVENT_QP_FATAL);
    thread = g_thread_new("destroy", destroy_late, event.element.qp);
    g_assert_cmpint(fake_verbs_count(fake, "qp"), ==, 1);
    ibv_ack_async_event(&event);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(thread)), ==, 0);

    /* one that was not goes with it */
    e.qp = new_qp(&e, IBV_QPT_RC, NULL);
    fake_verbs_tell(fake, "event QP_FATAL 0x%x", e.qp->qp_num);
    g_assert_true(readable(e.ctx->async_fd));
    g_assert_cmpint(ibv_destroy_qp(e.qp), ==, 0);
    g_assert_false(readable(e.ctx->async_fd));
    g_free(fake_verbs_refuses(fake, "event QP_FATAL 0x1107"));
    e.qp = NULL;
    end_free(&e);
}

static void test_overrun(void)
{
    struct ibv_async_event event;
    End e = end_new(IBV_QPT_RC);

    for (int i = 0; i < 4 * DEPTH; i++) {
        fake_verbs_tell(fake, "wc 0x%x wr_id=%d", e.cq->handle, i);
    }
    g_assert_false(readable(e.ctx->async_fd));
    fake_verbs_tell(fake, "wc 0x%x wr_id=99", e.cq->handle);
    event = next_event(e.ctx, IBV_EVENT_CQ_ERR);
    g_assert_true(event.element.cq == e.cq);
    ibv_ack_async_event(&event);
    end_free(&e);
}

static void test_device_gone(void)
{
    struct ibv_async_event event;
    struct ibv_device **list;
    int n;
    End e = end_new(IBV_QPT_RC);

    victim = &e;
    fake_verbs_tell(fake, "device gone");
    event = next_event(e.ctx, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
    g_assert_cmpint(try_create_qp(), ==, EIO);
    g_assert_cmpint(try_query_port(), ==, EIO);
    g_assert_cmpint(try_open_device(), ==, ENODEV);
    g_assert_cmpint(ibv_destroy_qp(e.qp), ==, EIO);
    g_assert_cmpint(fake_verbs_count_objects(fake), ==, 0);
    list = ibv_get_device_list(&n);
    g_assert_cmpint(n, ==, 0);
    ibv_free_device_list(list);
    /* the kernel has taken the objects, only this process knows of them */
    g_assert_cmpint(ibv_close_device(e.ctx), ==, 0);
    fake_verbs_tell(fake, "device back");
    g_free(e.buf);
}

static void test_script_errors(void)
{
    static const char *wrong[] = {
        "dance", "fail", "fail alloc_pd", "fail alloc_pd EWHAT",
        "fail alloc_pd ENOMEM often", "auto", "complete", "event NOTHING",
        "gid 0", "gid 16 ::1", "gid 0 here", "port", "mtu 1000",
        "attr max_dreams 1", "device", "count all", "wc 0x1 wr_id=0",
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        g_free(fake_verbs_refuses(fake, wrong[i]));
    }
}

void add_fake_fault_tests(void)
{
    fake_test_add("verbs-fail-as-told", test_failures);
    fake_test_add("limits", test_limits);
    fake_test_add("calls-wait-until-released", test_delay);
    fake_test_add("completions-by-hand", test_by_hand);
    fake_test_add("events", test_events);
    fake_test_add("cq-overrun", test_overrun);
    fake_test_add("script-errors", test_script_errors);
    /* what the kernel took away, a process cannot give back */
    g_test_add_func("/fake-ibverbs/device-gone", test_device_gone);
}
