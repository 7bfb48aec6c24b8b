//go:build linux

package main

import (
	"bytes"
	"fmt"
	"html"
)

// Sizes of the plot, in pixels.
const (
	plotWidth = 760
	nameWidth = 110
	barHeight = 16
	valueRoom = 120
	titleRoom = 34
)

var barColours = map[string]string{ours: "#0a7d5a", floor: "#9aa3ad", node: "#c0792a", "zishang-v3": "#5b6bc0", "zishang-v2": "#a9546c"}

// writePlot draws a group of bars for each cost: the median as the bar, the ends as a line.
func (r *report) writePlot() error {
	var body bytes.Buffer
	y := 10
	for _, figure := range r.order {
		if isCost(figure) {
			y = r.plotGroup(&body, figure, y)
		}
	}
	out := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#ffffff"/>
%s</svg>
`, plotWidth, y, body.String())
	return r.write("plot.svg", []byte(out))
}

func (r *report) plotGroup(out *bytes.Buffer, figure string, y int) int {
	largest := 0.0
	for _, values := range r.values[figure] {
		largest = max(largest, spreadOf(values).Max)
	}
	scale := float64(plotWidth-nameWidth-valueRoom) / max(largest, 1e-9)
	fmt.Fprintf(out, "<text x=\"10\" y=\"%d\" font-weight=\"bold\">%s</text>\n", y+20, html.EscapeString(figure))
	y += titleRoom
	for _, p := range r.peers {
		values := r.values[figure][p.name]
		if len(values) == 0 {
			continue
		}
		s := spreadOf(values)
		at := func(v float64) float64 { return nameWidth + v*scale }
		middle := y + barHeight/2
		fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", nameWidth-8, y+12, p.name)
		fmt.Fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n", nameWidth, y+2, s.Median*scale, barHeight-4, barColours[p.name])
		fmt.Fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#222222\"/>\n", at(s.Min), middle, at(s.Max), middle)
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", at(s.Max)+6, y+12, short(s.Median))
		y += barHeight + 4
	}
	return y
}
