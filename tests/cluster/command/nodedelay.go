// SPDX-License-Identifier: Apache-2.0

package main

import (
	endian "encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// From linux/netfilter/nfnetlink.h and nfnetlink_queue.h. Numbers in the kernel's own headers are in host order, those
// of netfilter in network order.
const (
	netlinkNetfilter = 12
	queueSubsystem   = 3 << 8

	messageVerdict = queueSubsystem | 1
	messageConfig  = queueSubsystem | 2

	configCommand, configParameters, configMaximum, configMask, configFlags = 1, 2, 3, 4, 5
	packetHeader, verdictHeader                                             = 1, 2

	bindCommand        = 1
	copyNoPayload      = 1
	failOpen, keepLong = 1 << 0, 1 << 2 // Pass packets when the queue is full; do not cut long ones into pieces.
	verdictAccept      = 1
)

// nodeDelay is the process behind `node-net delay MS`: it holds each packet of the kernel's packet queue 0 for MS
// milliseconds. (The kernel's own delay, netem, is missing in many kernels of virtual machines.)
func nodeDelay(args []string) error {
	if len(args) != 1 {
		return errors.New("node-delay: only `cluster node-net` starts it")
	}
	milliseconds, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("node-delay: %w", err)
	}
	queue, err := openPacketQueue()
	if err != nil {
		return fmt.Errorf("node-delay: open the packet queue: %w", err)
	}
	type held struct {
		id  uint32
		due time.Time
	}
	packets := make(chan held, queueLength)
	failed := make(chan error, 2)
	go func() {
		for p := range packets { // All wait equally long, so the first is always due first.
			time.Sleep(time.Until(p.due))
			if err := queue.accept(p.id); err != nil {
				failed <- err
			}
		}
	}()
	go func() {
		failed <- queue.receive(func(id uint32) {
			packets <- held{id, time.Now().Add(time.Duration(milliseconds) * time.Millisecond)}
		})
	}()
	return fmt.Errorf("node-delay: %w", <-failed)
}

const queueLength = 65536

type packetQueue struct {
	socket int
}

func openPacketQueue() (*packetQueue, error) {
	socket, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkNetfilter)
	if err != nil {
		return nil, err
	}
	q := &packetQueue{socket}
	if err := syscall.Bind(socket, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, err
	}
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 8<<20); err != nil {
		return nil, err
	}
	number := func(v uint32) []byte { return endian.BigEndian.AppendUint32(nil, v) }
	for _, attributes := range [][]byte{
		attribute(configCommand, []byte{bindCommand, 0, 0, 0}),
		append(attribute(configParameters, append(number(0), copyNoPayload)), attribute(configMaximum, number(queueLength))...),
		append(attribute(configFlags, number(failOpen|keepLong)), attribute(configMask, number(failOpen|keepLong))...),
	} {
		if err := q.send(messageConfig, syscall.NLM_F_ACK, attributes); err != nil {
			return nil, err
		}
		if err := q.acknowledged(); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func attribute(kind uint16, value []byte) []byte {
	const header = 4
	out := endian.NativeEndian.AppendUint16(nil, uint16(header+len(value)))
	out = endian.NativeEndian.AppendUint16(out, kind)
	out = append(out, value...)
	return append(out, make([]byte, -len(out)&3)...)
}

func (q *packetQueue) send(kind, flags uint16, attributes []byte) error {
	const headers = syscall.NLMSG_HDRLEN + 4
	message := endian.NativeEndian.AppendUint32(nil, uint32(headers+len(attributes)))
	message = endian.NativeEndian.AppendUint16(message, kind)
	message = endian.NativeEndian.AppendUint16(message, syscall.NLM_F_REQUEST|flags)
	message = append(message, make([]byte, 8)...) // Sequence number and sender: the kernel knows us by the socket.
	message = append(message, syscall.AF_UNSPEC, 0, 0, 0)
	message = append(message, attributes...)
	return syscall.Sendto(q.socket, message, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK})
}

// acknowledged reads the kernel's answer to a message that asked for one.
func (q *packetQueue) acknowledged() error {
	buffer := make([]byte, syscall.Getpagesize())
	for {
		n, _, err := syscall.Recvfrom(q.socket, buffer, 0)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			if m.Header.Type != syscall.NLMSG_ERROR || len(m.Data) < 4 {
				continue // A packet.
			}
			if code := int32(endian.NativeEndian.Uint32(m.Data)); code != 0 {
				return syscall.Errno(-code)
			}
			return nil
		}
	}
}

func (q *packetQueue) accept(id uint32) error {
	verdict := endian.BigEndian.AppendUint32(nil, verdictAccept)
	return q.send(messageVerdict, 0, attribute(verdictHeader, endian.BigEndian.AppendUint32(verdict, id)))
}

// receive hands over the ids of packets as they come.
func (q *packetQueue) receive(packet func(id uint32)) error {
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := syscall.Recvfrom(q.socket, buffer, 0)
		if err == syscall.EINTR || err == syscall.ENOBUFS { // Those lost are lost, as on any bad network.
			continue
		}
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(buffer[:n])
		if err != nil {
			return err
		}
		for _, m := range messages {
			if id, ok := packetID(m.Data); ok && m.Header.Type&0xff00 == queueSubsystem {
				packet(id)
			}
		}
	}
}

// packetID finds the id among the attributes of a packet's message.
func packetID(data []byte) (uint32, bool) {
	const header = 4 // Of netfilter, and of each attribute.
	for data = data[min(header, len(data)):]; len(data) >= header; {
		length, kind := int(endian.NativeEndian.Uint16(data)), endian.NativeEndian.Uint16(data[2:])
		if length < header || length > len(data) {
			return 0, false
		}
		if value := data[header:length]; kind == packetHeader && len(value) >= 4 {
			return endian.BigEndian.Uint32(value), true
		}
		data = data[min((length+3)&^3, len(data)):]
	}
	return 0, false
}
