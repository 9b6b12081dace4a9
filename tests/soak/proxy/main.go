// SPDX-License-Identifier: Apache-2.0

// A TCP proxy on 127.0.0.1 whose network fails on command. It passes bytes and looks at none, so TLS goes through it.
//
//	proxy TARGET SEED        prints "port N", then reads commands, one a line, and answers each with "ok" or "error WHY"
//
// A command ends the fault before it:
//
//	freeze up|down|both      connections stay open and pass nothing, also new ones; up is from client to server
//	drop                     what clients send is not even acknowledged, also when they connect, and nothing comes back
//	delay up|down|both MS    bytes come so much later
//	throttle BYTES           each connection passes so many bytes a second, each way
//	cut rst|fin              again and again all connections are ended in the middle of what they pass
//	refuse                   new connections are refused, those that are open go on
//	away                     likewise, and those that are open are reset: a server that has gone
//	heal                     all is well
//	stat                     prints "open N accepted N"; changes nothing
package main

import (
	"bufio"
	"fmt"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	chunk = 32 << 10
	// Below the ports that the kernel gives to outgoing connections: nobody takes ours while new ones are refused.
	firstPort, lastPort = 20000, 29999
)

// fault is what the network does now. It is replaced as a whole.
type fault struct {
	freezes  [2]bool          // By direction.
	delay    [2]time.Duration // By direction.
	rate     int              // Bytes a second; 0: no limit.
	cut      string           // "rst" or "fin".
	isSilent bool             // drop
	isShut   bool             // refuse, away
	resets   bool             // away
	over     chan struct{}    // Closed when it ends.
}

const up, down = 0, 1

type pair struct {
	ends   [2]*net.TCPConn // The client's, the server's.
	mutex  sync.Mutex
	cut    string        // How the next chunk ends the connection; empty: it does not.
	closed chan struct{} // Both are closed, or about to be.
	once   sync.Once
}

type proxy struct {
	target string
	port   int
	random *rand.Rand // Of the goroutine that cuts.

	mutex    sync.Mutex // Guards everything below.
	now      *fault
	listener *net.TCPListener
	pairs    map[*pair]bool
	accepted int
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: proxy TARGET SEED"))
	}
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	if err != nil {
		fail(err)
	}
	p := &proxy{target: os.Args[1], random: rand.New(rand.NewSource(seed)), pairs: map[*pair]bool{}}
	p.now = &fault{over: make(chan struct{})}
	for p.port = firstPort + os.Getpid()%(lastPort-firstPort); ; p.port++ {
		if err = p.listen(); err == nil {
			break
		} else if p.port >= lastPort {
			fail(err)
		}
	}
	fmt.Printf("port %d\n", p.port)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) == 1 && words[0] == "stat" {
			p.mutex.Lock()
			fmt.Printf("open %d accepted %d\n", len(p.pairs), p.accepted)
			p.mutex.Unlock()
		} else if next, err := parse(words); err != nil {
			fmt.Printf("error %v\n", err)
		} else if err := p.become(next); err != nil {
			fmt.Printf("error %v\n", err)
		} else {
			fmt.Println("ok")
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "proxy:", err)
	os.Exit(1)
}

func parse(words []string) (*fault, error) {
	f := &fault{over: make(chan struct{})}
	command := strings.Join(words, " ")
	var way string
	var number int
	switch {
	case command == "heal":
	case command == "freeze up", command == "freeze down", command == "freeze both":
		f.freezes = [2]bool{words[1] != "down", words[1] != "up"}
	case command == "drop":
		// Beside what the kernel throws away: an answer that is on its way is not passed on either.
		f.isSilent, f.freezes = true, [2]bool{true, true}
	case command == "cut rst", command == "cut fin":
		f.cut = words[1]
	case command == "refuse":
		f.isShut = true
	case command == "away":
		f.isShut, f.resets = true, true
	case scan(command, "delay %s %d", &way, &number) && (way == "up" || way == "down" || way == "both"):
		if way != "down" {
			f.delay[up] = time.Duration(number) * time.Millisecond
		}
		if way != "up" {
			f.delay[down] = time.Duration(number) * time.Millisecond
		}
	case scan(command, "throttle %d", &number) && number > 0:
		f.rate = number
	default:
		return nil, fmt.Errorf("no such command: %q", command)
	}
	return f, nil
}

func scan(text, format string, values ...any) bool {
	n, err := fmt.Sscanf(text, format, values...)
	return err == nil && n == len(values)
}

// become ends the fault of now and begins the next.
func (p *proxy) become(next *fault) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	last := p.now
	p.now = next
	defer close(last.over)
	if last.isSilent && !next.isSilent {
		filter(p.listener, false)
		for pair := range p.pairs {
			filter(pair.ends[0], false)
		}
	}
	if next.isShut && p.listener != nil {
		p.listener.Close()
		p.listener = nil
	} else if !next.isShut && p.listener == nil {
		if err := p.listenLocked(); err != nil {
			return err
		}
	}
	if next.isSilent {
		filter(p.listener, true)
		for pair := range p.pairs {
			filter(pair.ends[0], true)
		}
	}
	if next.resets {
		for pair := range p.pairs {
			pair.end("rst")
		}
	}
	if next.cut != "" {
		go p.cutAgain(next)
	}
	return nil
}

func (p *proxy) listen() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.listenLocked()
}

func (p *proxy) listenLocked() error {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: p.port})
	if err != nil {
		return err
	}
	p.listener = listener
	go p.accept(listener)
	return nil
}

// accept ends when the listener is closed.
func (p *proxy) accept(listener *net.TCPListener) {
	for {
		client, err := listener.AcceptTCP()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp4", p.target)
		if err != nil {
			client.Close()
			continue
		}
		c := &pair{ends: [2]*net.TCPConn{client, server.(*net.TCPConn)}, closed: make(chan struct{})}
		p.mutex.Lock()
		p.accepted++
		p.pairs[c] = true
		filter(client, p.now.isSilent) // It has its filter from the listener, as that was when the client connected.
		p.mutex.Unlock()
		go p.pass(c, up)
		go p.pass(c, down)
		go func() {
			<-c.closed
			p.mutex.Lock()
			delete(p.pairs, c)
			p.mutex.Unlock()
		}()
	}
}

// pass moves bytes in one direction until an end is closed.
func (p *proxy) pass(c *pair, direction int) {
	from, to := c.ends[direction], c.ends[1-direction]
	type part struct {
		bytes []byte
		due   time.Time
	}
	parts := make(chan part, 64)
	go func() {
		defer close(parts)
		for {
			bytes := make([]byte, chunk)
			n, err := from.Read(bytes)
			if n > 0 {
				select {
				case parts <- part{bytes[:n], time.Now().Add(p.current().delay[direction])}:
				case <-c.closed:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	defer c.end("fin") // Also where one side only stops sending: neither HTTP nor TLS uses that.
	for next := range parts {
		if !p.await(c, next.due) || !p.write(c, to, next.bytes, direction) {
			return
		}
	}
	// While bytes are frozen, so is the end.
	for p.current().freezes[direction] && p.thaw(c) {
	}
}

// write is false when the connection has ended.
func (p *proxy) write(c *pair, to *net.TCPConn, bytes []byte, direction int) bool {
	for len(bytes) > 0 {
		f := p.current()
		if f.freezes[direction] {
			if !p.thaw(c) {
				return false
			}
			continue
		}
		piece := bytes
		if f.rate > 0 {
			piece = bytes[:min(len(bytes), max(f.rate/10, 1))]
		}
		c.mutex.Lock()
		cut := c.cut
		c.mutex.Unlock()
		if cut != "" {
			to.Write(piece[:len(piece)/2])
			c.end(cut)
			return false
		}
		if _, err := to.Write(piece); err != nil {
			return false
		}
		bytes = bytes[len(piece):]
		if f.rate > 0 && !p.await(c, time.Now().Add(time.Duration(len(piece))*time.Second/time.Duration(f.rate))) {
			return false
		}
	}
	return true
}

func (p *proxy) current() *fault {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.now
}

// await returns at that time, or when the fault of now ends; false when the connection has ended.
func (p *proxy) await(c *pair, until time.Time) bool {
	wait := time.Until(until)
	if wait <= 0 {
		return true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.current().over:
	case <-c.closed:
		return false
	}
	return true
}

// thaw waits for the end of the fault of now; false when the connection has ended.
func (p *proxy) thaw(c *pair) bool {
	select {
	case <-p.current().over:
		return true
	case <-c.closed:
		return false
	}
}

// cutAgain ends all connections every 0.2 to 2 s, in the middle of a chunk where one passes soon.
func (p *proxy) cutAgain(f *fault) {
	for {
		p.mutex.Lock()
		for c := range p.pairs {
			c.mutex.Lock()
			c.cut = f.cut
			c.mutex.Unlock()
			time.AfterFunc(300*time.Millisecond, func() { c.end(f.cut) })
		}
		p.mutex.Unlock()
		select {
		case <-time.After(200*time.Millisecond + time.Duration(p.random.Int63n(int64(1800*time.Millisecond)))):
		case <-f.over:
			return
		}
	}
}

func (c *pair) end(how string) {
	c.once.Do(func() {
		close(c.closed)
		for _, end := range c.ends {
			if how == "rst" {
				end.SetLinger(0)
			}
			end.Close()
		}
	})
}

// filter makes the kernel throw away what comes in for this socket before TCP sees it, or take it again.
func filter(socket syscall.Conn, isSilent bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		if isSilent {
			syscall.AttachLsf(int(fd), []syscall.SockFilter{*syscall.LsfStmt(syscall.BPF_RET|syscall.BPF_K, 0)})
		} else {
			syscall.DetachLsf(int(fd)) // Fails if there is none, which is as good.
		}
	})
}
