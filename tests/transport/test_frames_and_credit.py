"""What travels between workers, byte by byte, and how much of it may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bireme.data.ids import EdgeId, QueryId
from bireme.errors import EngineBug
from bireme.transport.credit import ReceiveCredit, SendCredit
from bireme.transport.frame import HEADER_BYTES, Frame, FrameDamaged, FrameKind, FrameReader, encode

numbers = st.integers(0, 2**32 - 1)
frames = st.builds(
    Frame,
    kind=st.sampled_from(FrameKind),
    query=st.integers(0, 2**64 - 1).map(QueryId),
    edge=numbers.map(EdgeId),
    producer=numbers,
    partition=numbers,
    sequence=st.integers(0, 2**64 - 1),
    rows=st.integers(0, 2**40),
    amount=st.integers(0, 2**40),
    payload=st.binary(max_size=50),
)


def wire(frame: Frame) -> bytes:
    header, payload = encode(frame)
    return header + bytes(payload)


@given(st.lists(frames, max_size=4), st.data())
def test_frames_come_back_whatever_the_pieces(sent: list[Frame], data: st.DataObject) -> None:
    stream = b"".join(map(wire, sent))
    reader, got, at = FrameReader(), [], 0
    while at < len(stream):
        step = data.draw(st.integers(1, len(stream) - at))
        got += list(reader.feed(stream[at : at + step]))
        at += step
    assert got == sent
    assert reader.pending == 0


@given(frames, st.data())
def test_any_flipped_bit_is_seen(frame: Frame, data: st.DataObject) -> None:
    stream = bytearray(wire(frame))
    at = data.draw(st.integers(0, len(stream) * 8 - 1))
    stream[at // 8] ^= 1 << at % 8
    # In the length it may also look like a frame whose rest has not come.
    reader = FrameReader()
    try:
        assert list(reader.feed(bytes(stream))) == []
        raise FrameDamaged("incomplete")
    except FrameDamaged:
        pass


@given(st.binary(min_size=HEADER_BYTES, max_size=200))
def test_foreign_bytes_are_no_frames(data: bytes) -> None:
    with pytest.raises(FrameDamaged):
        list(FrameReader().feed(data))


def test_half_a_frame_is_pending() -> None:
    reader = FrameReader()
    frame = Frame(kind=FrameKind.END, query=QueryId(1), edge=EdgeId(2), producer=0, payload=b"abc")
    assert list(reader.feed(wire(frame)[:-1])) == []
    assert reader.pending > 0


def test_a_sender_spends_what_it_was_granted_and_asks_once() -> None:
    credit = SendCredit()
    assert credit.ask(10)
    assert not credit.ask(10)
    credit.granted(10)
    assert not credit.ask(10)
    credit.spend(7)
    assert credit.ask(10)
    with pytest.raises(EngineBug):
        credit.spend(4)


def test_a_receiver_keeps_its_window_granted_in_large_pieces() -> None:
    credit = ReceiveCredit(100)
    assert credit.shortfall() == 100
    credit.grant(100)
    credit.use(40)
    assert credit.shortfall() == 0
    credit.use(20)
    assert credit.shortfall() == 60


def test_a_batch_beyond_the_window_gets_its_size() -> None:
    credit = ReceiveCredit(100)
    credit.grant(100)
    credit.want(250)
    assert credit.shortfall() == 150
    credit.grant(150)
    credit.use(250)
    assert credit.shortfall() == 100


def test_a_want_within_the_window_is_served_though_half_of_it_is_granted() -> None:
    credit = ReceiveCredit(100)
    credit.grant(60)
    credit.want(80)
    assert credit.shortfall() == 40


def test_what_was_never_granted_is_a_bug() -> None:
    credit = ReceiveCredit(10)
    with pytest.raises(EngineBug):
        credit.use(1)


@given(st.lists(st.tuples(st.sampled_from(["grant", "send", "want"]), st.integers(1, 300)), max_size=30))
def test_both_sides_agree_and_nothing_is_sent_without_space(story: list[tuple[str, int]]) -> None:
    sender, receiver = SendCredit(), ReceiveCredit(100)
    for what, nbytes in story:
        if what == "grant" and (missing := receiver.shortfall()):
            receiver.grant(missing)
            sender.granted(missing)
        elif what == "send" and sender.covers(nbytes):
            sender.spend(nbytes)
            receiver.use(nbytes)
        elif what == "want" and sender.ask(nbytes):
            receiver.want(nbytes)
            assert receiver.shortfall() >= nbytes - sender.available
        assert sender.available == receiver.outstanding >= 0
