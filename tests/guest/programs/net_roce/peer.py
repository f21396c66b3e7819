#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""peer.py DEVICE GID-INDEX PORT: wait for user.py, and talk to it by an RDMA
device."""
import ipaddress
import socket
import sys
import time

import pyverbs.enums as e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

from talk import REGION, talk

OPCODES = {'send': e.IBV_WR_SEND, 'write': e.IBV_WR_RDMA_WRITE,
           'read': e.IBV_WR_RDMA_READ}
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | \
    e.IBV_ACCESS_REMOTE_READ


class Verbs:
    """An endpoint (talk.py) of an RDMA device"""

    def __init__(self, device, gid):
        self.context, self.gid = Context(name=device), gid
        self.pd = PD(self.context)
        self.mr = MR(self.pd, REGION, ACCESS)
        self.cq = CQ(self.context, 16)
        self.qp = QP(self.pd, QPInitAttr(
            qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, sq_sig_all=1,
            cap=QPCap(max_send_wr=4, max_recv_wr=4)))
        self.peer = None
        self.address = {
            'qpn': self.qp.qp_num, 'rkey': self.mr.rkey, 'addr': self.mr.buf,
            'gid': str(self.context.query_gid(1, gid))}

    def connect(self, peer):
        self.peer = peer
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = ACCESS
        attr.path_mtu = e.IBV_MTU_1024
        attr.dest_qp_num = peer['qpn']
        gid = GID(ipaddress.IPv6Address(peer['gid']).exploded)
        attr.ah_attr = AHAttr(gr=GlobalRoute(dgid=gid, sgid_index=self.gid),
                              is_global=1, port_num=1)
        attr.max_rd_atomic = attr.max_dest_rd_atomic = 4
        attr.timeout, attr.retry_cnt, attr.rnr_retry = 17, 7, 7
        attr.min_rnr_timer = 12
        self.qp.to_rts(attr)

    def put(self, offset, data):
        self.mr.write(data, len(data), offset)

    def get(self, offset, length):
        return self.mr.read(length, offset)

    def post(self, what, offset, length, remote=0):
        sge = [SGE(self.mr.buf + offset, length, self.mr.lkey)]
        if what == 'recv':
            self.qp.post_recv(RecvWR(num_sge=1, sg=sge))
            return
        wr = SendWR(opcode=OPCODES[what], num_sge=1, sg=sge)
        wr.set_wr_rdma(self.peer['rkey'], self.peer['addr'] + remote)
        self.qp.post_send(wr)

    def wait(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            count, done = self.cq.poll()
            if count:
                assert done[0].status == e.IBV_WC_SUCCESS, done[0]
                return
        raise AssertionError('no completion')


def main():
    device, gid, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with socket.create_server(('', port)) as server:
        server.settimeout(60)
        talk(Verbs(device, gid), server.accept()[0], first=False)


main()
