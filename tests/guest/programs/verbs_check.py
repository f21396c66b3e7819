# SPDX-License-Identifier: GPL-2.0-or-later
"""Single properties of a device, by rdma-core's Python bindings.

verbs_check.py CHECK DEVICE GID-INDEX runs the function check_CHECK; it fails
by an exception. Each QP talks to another one of the same process.
"""
import fcntl
import os
import select
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import AH, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel, CqInitAttrEx, CQEX, PollCqAttr
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SGE, SendWR

QKEY = 0x11111111
GRH = 40


class Bench:
    """A device, a PD and a region of 4 KiB."""

    def __init__(self, device, gid):
        self.context = Context(name=device)
        self.gid = gid
        self.pd = PD(self.context)
        self.mr = MR(self.pd, 4096, e.IBV_ACCESS_LOCAL_WRITE |
                     e.IBV_ACCESS_REMOTE_WRITE)
        flags = fcntl.fcntl(self.async_fd, fcntl.F_GETFL)
        fcntl.fcntl(self.async_fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)

    @property
    def async_fd(self):
        """Return the only file of asynchronous events in this process."""
        for name in os.listdir('/proc/self/fd'):
            try:
                if 'infinibandevent' in os.readlink(f'/proc/self/fd/{name}'):
                    return int(name)
            except OSError:
                pass
        raise AssertionError('no file for asynchronous events')

    def sge(self, length=64):
        return SGE(self.mr.buf, length, self.mr.lkey)

    def address(self):
        gid = self.context.query_gid(1, self.gid)
        return AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=self.gid),
                      is_global=1, port_num=1)

    def qp(self, kind, cq, depth=16):
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth)
        return QP(self.pd, QPInitAttr(qp_type=kind, scq=cq, rcq=cq, cap=cap,
                                      sq_sig_all=1))

    def attributes(self, peer):
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = e.IBV_ACCESS_REMOTE_WRITE
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer.qp_num
        attr.ah_attr = self.address()
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 1
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 17, 7, 7
        attr.min_rnr_timer = 12
        return attr

    def rc_pair(self, cq):
        """Return two QPs, the first one in RTS, the second in RTR."""
        one = self.qp(e.IBV_QPT_RC, cq)
        two = self.qp(e.IBV_QPT_RC, cq)
        two.to_rtr(self.attributes(one))
        one.to_rts(self.attributes(two))
        return one, two

    def ud(self, cq, depth=16):
        qp = self.qp(e.IBV_QPT_UD, cq, depth)
        attr = QPAttr(port_num=1)
        attr.qkey = QKEY
        qp.to_rts(attr)
        return qp

    def event(self, wanted, timeout=20):
        """Wait for this event; another one is a failure."""
        found = self.next_event(timeout)
        assert found == wanted, f'event {found}, not {wanted}'

    def next_event(self, timeout):
        if not select.select([self.async_fd], [], [], timeout)[0]:
            return None
        event = self.context.get_async_event()
        event.ack()
        return event.event_type


def completions(cq, count, timeout=20):
    """Wait for this many completions."""
    found = []
    end = time.monotonic() + timeout
    while len(found) < count:
        found += cq.poll(count - len(found))[1] or []
        assert time.monotonic() < end, f'{len(found)} of {count} completions'
    return found


def refused(call, *arguments):
    """Return the errno with which a call fails."""
    try:
        call(*arguments)
    except PyverbsRDMAError as error:
        return error.error_code
    raise AssertionError(f'{call} succeeds')


def check_qp_events(bench):
    """COMM_EST comes first, then SQ_DRAINED, then the responder's access
    violation."""
    cq = CQ(bench.context, 64)
    one, two = bench.rc_pair(cq)
    two.post_recv(RecvWR(num_sge=1, sg=[bench.sge()]))
    one.post_send(SendWR(num_sge=1, sg=[bench.sge()]))
    completions(cq, 2)
    bench.event(e.IBV_EVENT_COMM_EST)
    attr = QPAttr(qp_state=e.IBV_QPS_SQD)
    attr.en_sqd_async_notify = 1
    one.modify(attr, e.IBV_QP_STATE | e.IBV_QP_EN_SQD_ASYNC_NOTIFY)
    bench.event(e.IBV_EVENT_SQ_DRAINED)
    one.modify(QPAttr(qp_state=e.IBV_QPS_RTS), e.IBV_QP_STATE)
    write = SendWR(num_sge=1, sg=[bench.sge()], opcode=e.IBV_WR_RDMA_WRITE)
    write.set_wr_rdma(bench.mr.rkey ^ 1, bench.mr.buf)
    one.post_send(write)
    assert completions(cq, 1)[0].status == e.IBV_WC_REM_ACCESS_ERR
    bench.event(e.IBV_EVENT_QP_ACCESS_ERR)
    assert bench.next_event(0.3) is None


def check_no_event_after_destroy(bench):
    """A destroyed QP has no event, nor has the next one with its number."""
    cq = CQ(bench.context, 64)
    for _ in range(20):
        one, two = bench.rc_pair(cq)
        two.post_recv(RecvWR(num_sge=1, sg=[bench.sge()]))
        one.post_send(SendWR(num_sge=1, sg=[bench.sge()]))
        completions(cq, 1)
        two.close()
        other = bench.qp(e.IBV_QPT_RC, cq)
        assert bench.next_event(0.02) is None
        other.close()
        one.close()
        while cq.poll(16)[1]:
            pass


def check_deep_cq(bench):
    """A CQ three times as deep as the largest ring loses nothing, and keeps
    the order of completions."""
    depth, count = 1000, 3072
    cq = CQ(bench.context, count)
    assert cq.cqe >= count, cq.cqe
    qps = [bench.ud(cq, depth) for _ in range(4)]
    address = AH(bench.pd, attr=bench.address())
    for i in range(count):
        send = SendWR(wr_id=i, num_sge=1, sg=[bench.sge()])
        send.set_wr_ud(address, 0x7fff, QKEY)
        qps[i % 4].post_send(send)
    time.sleep(0.5)
    last = [-1] * 4
    for wc in completions(cq, count):
        assert wc.status == e.IBV_WC_SUCCESS, wc
        assert last[wc.wr_id % 4] + 1 == wc.wr_id // 4, (wc.wr_id, last)
        last[wc.wr_id % 4] += 1
    assert not cq.poll(1)[1]


def check_deep_cq_with_events(bench):
    """Completions that were pending wake a program that waits."""
    channel = CompChannel(bench.context)
    count = 1500
    cq = CQ(bench.context, count, None, channel)
    qp = bench.ud(cq, 1000)
    address = AH(bench.pd, attr=bench.address())
    found = posted = events = 0
    while found < count:
        while posted < min(count, found + 1000):
            send = SendWR(num_sge=1, sg=[bench.sge()])
            send.set_wr_ud(address, 0x7fff, QKEY)
            qp.post_send(send)
            posted += 1
        cq.req_notify()
        got = len(cq.poll(256)[1] or [])
        found += got
        if not got:
            channel.get_cq_event(cq)
            events += 1
    cq.ack_events(events)


def check_resize_cq(bench):
    """The depth can grow and shrink, but not below the number of waiting
    completions."""
    cq = CQ(bench.context, 8)
    qp = bench.ud(cq, 64)
    cq.resize(100)
    assert cq.cqe == 100, cq.cqe
    address = AH(bench.pd, attr=bench.address())
    for _ in range(50):
        send = SendWR(num_sge=1, sg=[bench.sge()])
        send.set_wr_ud(address, 0x7fff, QKEY)
        qp.post_send(send)
    time.sleep(0.5)
    assert refused(cq.resize, 49) == 22
    assert cq.cqe == 100, cq.cqe
    cq.resize(50)
    completions(cq, 20)
    cq.resize(30)
    assert refused(cq.resize, 0) == 22
    completions(cq, 30)


def check_arming(bench):
    """A completion after arming raises an event, one before it does not. If
    the program arms so, only solicited ones do."""
    channel = CompChannel(bench.context)
    cq = CQ(bench.context, 64, None, channel)
    qp = bench.ud(cq)
    address = AH(bench.pd, attr=bench.address())

    def message(flags):
        qp.post_recv(RecvWR(num_sge=1, sg=[bench.sge(64 + GRH)]))
        send = SendWR(num_sge=1, sg=[bench.sge()], send_flags=flags)
        send.set_wr_ud(address, qp.qp_num, QKEY)
        qp.post_send(send)
        completions(cq, 2)

    def expect(count):
        """Require this many events, after some time in which more could
        come."""
        found = 0
        while select.select([channel_fd()], [], [],
                            20 if found < count else 0.2)[0]:
            channel.get_cq_event(cq)
            found += 1
        cq.ack_events(found)
        assert found == count, f'{found} for {count} events'

    def channel_fd():
        fds = {int(n): os.readlink(f'/proc/self/fd/{n}')
               for n in os.listdir('/proc/self/fd')
               if os.path.islink(f'/proc/self/fd/{n}')}
        return max(n for n, to in fds.items() if 'infinibandevent' in to)

    message(0)
    expect(0)
    for _ in range(20):
        cq.req_notify()
        message(0)
        expect(1)
    cq.req_notify(solicited_only=True)
    message(0)
    message(0)
    expect(0)
    message(e.IBV_SEND_SOLICITED)
    expect(1)
    message(e.IBV_SEND_SOLICITED)
    expect(0)
    cq.req_notify(solicited_only=True)
    cq.req_notify()
    message(0)
    expect(1)
    cq.req_notify()
    cq.req_notify(solicited_only=True)
    message(0)
    expect(1)


def check_vlan_of_datagrams(bench):
    """The extended CQ has the VLAN."""
    cq = CQEX(bench.context, CqInitAttrEx(
        cqe=64, wc_flags=e.IBV_WC_STANDARD_FLAGS | e.IBV_WC_EX_WITH_CVLAN))
    qp = bench.ud(cq)
    qp.post_recv(RecvWR(wr_id=7, num_sge=1, sg=[bench.sge(64 + GRH)]))
    send = SendWR(num_sge=1, sg=[bench.sge()])
    send.set_wr_ud(AH(bench.pd, attr=bench.address()), qp.qp_num, QKEY)
    qp.post_send(send)
    vlans = {}
    end = time.monotonic() + 20
    while len(vlans) < 2:
        assert time.monotonic() < end, vlans
        if cq.start_poll(PollCqAttr()) == 0:
            assert cq.status == e.IBV_WC_SUCCESS, cq.status
            vlans[cq.wr_id] = cq.read_cvlan()
            cq.end_poll()
    print('VLAN', vlans[7])


if __name__ == '__main__':
    check = globals()[f'check_{sys.argv[1]}']
    check(Bench(sys.argv[2], int(sys.argv[3])))
    print('done')
