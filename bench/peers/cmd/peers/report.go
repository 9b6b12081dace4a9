// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"sort"
	"strings"
)

const (
	ours     = "clientlib"
	theirs   = "client-go"
	stripped = "client-go, no managedFields"

	mib = 1 << 20

	cacheSettled       = "cache: memory, settled (MiB)"
	cacheSynced        = "cache: memory when synced (MiB)"
	cachePeak          = "cache: peak memory (MiB)"
	cachePerPod        = "cache: memory a pod (bytes)"
	cacheCPU           = "cache: CPU until synced (s)"
	cacheWall          = "cache: time until synced (s)"
	latencyMedian      = "change to handler, median (ms)"
	latencyP99         = "change to handler, p99 (ms)"
	latencyChanges     = "  changes a second"
	latencyGets        = "  GETs a second"
	latencyCPU         = "  CPU a GET (us)"
	latencyConnections = "TCP connections"
)

// limit is what is promised of a row. Either number may be absent (0).
type limit struct {
	ratio    float64 // Of ours to client-go's, at most.
	value    float64 // Of ours.
	isAtMost bool    // The value; otherwise it is at least.
}

var limits = map[string]limit{
	cacheSettled:       {ratio: 0.2},
	cachePeak:          {ratio: 0.2},
	cachePerPod:        {value: 2000, isAtMost: true},
	cacheCPU:           {ratio: 0.5},
	latencyMedian:      {ratio: 1},
	latencyP99:         {ratio: 1},
	latencyConnections: {value: 6, isAtMost: true},

	// Million keys a CPU second.
	"queue: OneByOne/1000":          {value: 1},
	"queue: OneByOne/100000":        {value: 1},
	"queue: FillThenDrain/1000":     {value: 1},
	"queue: FillThenDrain/100000":   {value: 1},
	"queue: SameKeyTenTimes/1000":   {value: 1},
	"queue: SameKeyTenTimes/100000": {value: 1},
}

// table holds the measured values: by row and side, one a round.
type table map[string]map[string][]float64

func (t table) add(row, side string, value float64) {
	if t[row] == nil {
		t[row] = map[string][]float64{}
	}
	t[row][side] = append(t[row][side], value)
}

func (t table) print(o *options) {
	fmt.Printf("\n%d pods; %d watches and %d requests in flight, %d changes a second; queue: million keys a CPU second\n",
		o.pods, o.watches, o.requests, o.changeRate)
	fmt.Printf("medians of %d rounds; ratio: clientlib to client-go, the median of the rounds' own\n\n", o.rounds)
	fmt.Printf("%-34s %11s %11s %11s %7s   %s\n", "", ours, theirs, "no managed", "ratio", "limit")
	fmt.Printf("%-34s %11s %11s %11s\n", "", "", "", "fields")
	order := []string{cacheSettled, cacheSynced, cachePeak, cachePerPod, cacheCPU, cacheWall, latencyMedian, latencyP99,
		latencyConnections, latencyChanges, latencyGets, latencyCPU}
	var queueRows []string
	for row := range t {
		if strings.HasPrefix(row, "queue: ") {
			queueRows = append(queueRows, row)
		}
	}
	sort.Strings(queueRows)
	for _, row := range append(order, queueRows...) {
		if t[row] != nil {
			t.printRow(row)
		}
	}
}

func (t table) printRow(row string) {
	fmt.Printf("%-34s", row)
	for _, side := range []string{ours, theirs, stripped} {
		if values := t[row][side]; values != nil {
			fmt.Printf(" %11.2f", median(values))
		} else {
			fmt.Printf(" %11s", "")
		}
	}
	var ratios []float64
	for i := range min(len(t[row][ours]), len(t[row][theirs])) {
		ratios = append(ratios, t[row][ours][i]/t[row][theirs][i])
	}
	fmt.Printf(" %7.3f", median(ratios))
	l, ok := limits[row]
	if !ok {
		fmt.Println()
		return
	}
	value := median(t[row][ours])
	met := true
	switch {
	case l.ratio > 0:
		fmt.Printf("   ratio <= %g", l.ratio)
		met = median(ratios) <= l.ratio
	case l.isAtMost:
		fmt.Printf("   <= %g", l.value)
		met = value <= l.value
	default:
		fmt.Printf("   >= %g", l.value)
		met = value >= l.value
	}
	fmt.Println(map[bool]string{true: "  met", false: "  NOT met"}[met])
}

func median(values []float64) float64 {
	sorted := append([]float64{}, values...)
	sort.Float64s(sorted)
	return percentile(sorted, 0.5)
}

func percentile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
