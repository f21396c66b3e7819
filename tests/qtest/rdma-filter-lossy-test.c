/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-lossy spoils frames as told, and the same ones each time. A hub
 * joins the netdev it sits on with another; the test holds both far ends.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqtest.h"
#include "rdma/wire.h"

#define LOSSY_FRAMES 400

typedef struct Verdicts {
    unsigned seen[LOSSY_FRAMES];
    unsigned last;
    unsigned lost;
    unsigned twice;
    unsigned overtaken;
    unsigned corrupt;
    GByteArray *frames;             /* all that came, one after the other */
} Verdicts;

static size_t make_numbered(uint8_t *frame, unsigned n)
{
    size_t size = make_udp(frame, 0);

    stw_be_p(frame + 60, n);
    return size;
}

static bool lossy_take(Wire *w, Verdicts *v, int timeout_ms)
{
    uint8_t frame[FRAME_MAX], want[FRAME_MAX];
    size_t size = wire_recv(w, frame, timeout_ms);
    unsigned n;

    if (!size) {
        return false;
    }
    g_byte_array_append(v->frames, frame, size);
    n = lduw_be_p(frame + 60);
    make_numbered(want, n);
    if (n >= LOSSY_FRAMES || memcmp(frame, want, size)) {
        v->corrupt++;
        return true;
    }
    v->twice += v->seen[n]++ > 0;
    v->overtaken += n < v->last;
    v->last = MAX(n, v->last);
    return true;
}

static Verdicts lossy_run(const char *options)
{
    Verdicts v = { .frames = g_byte_array_new() };
    Wire in = {}, out = {};
    uint8_t frame[FRAME_MAX];
    QTestState *qts;

    wire_open(&in);
    wire_open(&out);
    qts = qtest_initf("-machine pc -nodefaults "
                      "-netdev %s,id=in -netdev %s,id=out "
                      "-netdev hubport,id=h0,hubid=0,netdev=in "
                      "-netdev hubport,id=h1,hubid=0,netdev=out "
                      "-object filter-lossy,id=l0,netdev=in,%s",
                      in.netdev, out.netdev, options);
    for (unsigned i = 0; i < LOSSY_FRAMES; i++) {
        wire_send(&in, frame, make_numbered(frame, i));
        /* Sockets hold few frames: let QEMU keep up */
        qtest_qmp_assert_success(qts, "{'execute': 'query-status'}");
        while (lossy_take(&out, &v, 0)) {
            continue;
        }
    }
    while (lossy_take(&out, &v, NEVER_MS)) {
        continue;
    }
    /* A frame that was held back comes by itself in the end. */
    qtest_clock_step(qts, 2 * 1000 * 1000);
    while (lossy_take(&out, &v, NEVER_MS)) {
        continue;
    }
    for (unsigned i = 0; i < LOSSY_FRAMES; i++) {
        v.lost += !v.seen[i];
    }
    qtest_quit(qts);
    wire_close(&in);
    wire_close(&out);
    return v;
}

static void test_lossy_does_what_it_is_told(void)
{
    Verdicts v;

    v = lossy_run("seed=3");
    g_assert_cmpuint(v.lost + v.twice + v.overtaken + v.corrupt, ==, 0);
    g_byte_array_unref(v.frames);

    v = lossy_run("drop=10000");
    g_assert_cmpuint(v.lost, ==, LOSSY_FRAMES);
    g_byte_array_unref(v.frames);

    v = lossy_run("drop=1000");
    g_assert_cmpuint(v.lost, >, LOSSY_FRAMES / 20);
    g_assert_cmpuint(v.lost, <, LOSSY_FRAMES / 5);
    g_assert_cmpuint(v.twice + v.overtaken + v.corrupt, ==, 0);
    g_byte_array_unref(v.frames);

    v = lossy_run("dup=1000");
    g_assert_cmpuint(v.twice, >, LOSSY_FRAMES / 20);
    g_assert_cmpuint(v.twice, <, LOSSY_FRAMES / 5);
    g_assert_cmpuint(v.lost + v.overtaken + v.corrupt, ==, 0);
    g_byte_array_unref(v.frames);

    v = lossy_run("reorder=1000");
    g_assert_cmpuint(v.overtaken, >, LOSSY_FRAMES / 20);
    g_assert_cmpuint(v.overtaken, <, LOSSY_FRAMES / 5);
    g_assert_cmpuint(v.lost + v.twice + v.corrupt, ==, 0);
    g_byte_array_unref(v.frames);

    v = lossy_run("corrupt=1000");
    g_assert_cmpuint(v.corrupt, >, LOSSY_FRAMES / 20);
    g_assert_cmpuint(v.corrupt, <, LOSSY_FRAMES / 5);
    /* A bit of the number may be hit: then it looks like another frame. */
    g_assert_cmpuint(v.lost, ==, v.corrupt + v.twice);
    g_byte_array_unref(v.frames);
}

static void test_lossy_repeats_itself(void)
{
    Verdicts a, b;
    const char *options = "drop=300,dup=300,reorder=300,corrupt=300,seed=%d";
    g_autofree char *seed_1 = g_strdup_printf(options, 1);
    g_autofree char *seed_2 = g_strdup_printf(options, 2);

    a = lossy_run(seed_1);
    b = lossy_run(seed_1);
    g_assert_cmpmem(a.frames->data, a.frames->len,
                    b.frames->data, b.frames->len);
    g_byte_array_unref(b.frames);
    b = lossy_run(seed_2);
    g_assert_true(a.frames->len != b.frames->len ||
                  memcmp(a.frames->data, b.frames->data, a.frames->len));
    g_byte_array_unref(a.frames);
    g_byte_array_unref(b.frames);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    qtest_add_func("/filter-lossy/does-what-it-is-told",
                   test_lossy_does_what_it_is_told);
    qtest_add_func("/filter-lossy/repeats-itself",
                   test_lossy_repeats_itself);
    return g_test_run();
}
