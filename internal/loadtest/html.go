package loadtest

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

//go:embed report.html
var reportPage string

var reportTemplate = template.Must(template.New("report").Parse(reportPage))

// WriteHTML writes a page that needs nothing else: the table and the plots.
func (r *Result) WriteHTML(w io.Writer) error {
	var plots []template.HTML
	for _, p := range r.plots() {
		if svg := p.svg(); svg != "" {
			plots = append(plots, svg)
		}
	}
	return reportTemplate.Execute(w, map[string]any{"Result": r, "Table": r.Table(), "Plots": plots})
}

// plot is lines over time.
type plot struct {
	title string
	lines map[string][][2]float64
}

func (r *Result) plots() []plot {
	rate, latency := plot{"per second", map[string][][2]float64{}}, plot{"latency, ms", map[string][][2]float64{}}
	cpu, memory := plot{"CPU, cores", map[string][][2]float64{}}, plot{"memory, MB", map[string][][2]float64{}}
	before, last := r.before, 0.0
	for _, p := range r.Points {
		for _, kind := range kindNames {
			if v, ok := p.Rate[kind]; ok {
				rate.add(kind, p.At, v)
			}
			if v, ok := p.P99[kind]; ok && kind != Typed.String() {
				latency.add(kind+" p50", p.At, p.P50[kind])
				latency.add(kind+" p99", p.At, v)
			}
		}
		for name, u := range p.Process {
			cpu.add(name, p.At, (u.CPU-before[name].CPU)/(p.At-last))
			memory.add(name, p.At, float64(u.RSS)/1e6)
		}
		before, last = p.Process, p.At
	}
	return []plot{rate, latency, cpu, memory}
}

func (p *plot) add(line string, x, y float64) {
	p.lines[line] = append(p.lines[line], [2]float64{x, y})
}

var colours = []string{"#0969da", "#cf222e", "#1a7f37", "#9a6700", "#8250df", "#bf3989", "#57606a", "#0a7ea4"}

// svg draws it; "" if there is nothing.
func (p plot) svg() template.HTML {
	const width, height, left, bottom = 760.0, 240.0, 60.0, 24.0
	maxX, maxY := 0.0, 0.0
	for _, line := range p.lines {
		for _, at := range line {
			maxX, maxY = max(maxX, at[0]), max(maxY, at[1])
		}
	}
	if maxX == 0 || maxY == 0 {
		return ""
	}
	maxY = roundUp(maxY)
	var b strings.Builder
	fmt.Fprintf(&b, `<figcaption>%s</figcaption><svg viewBox="0 0 %g %g" role="img">`, template.HTMLEscapeString(p.title), width+180, height+bottom+10)
	for i := range 5 {
		y := 5 + height*(1-float64(i)/4)
		fmt.Fprintf(&b, `<path d="M%g %gH%g" class="grid"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, y, width, left-6, y+4, tickLabel(maxY*float64(i)/4))
		x := left + (width-left)*float64(i)/4
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%.0f s</text>`, x, height+bottom, maxX*float64(i)/4)
	}
	for i, name := range slices.Sorted(maps.Keys(p.lines)) {
		colour := colours[i%len(colours)]
		var points strings.Builder
		for _, at := range p.lines[name] {
			fmt.Fprintf(&points, "%.1f,%.1f ", left+(width-left)*at[0]/maxX, 5+height*(1-at[1]/maxY))
		}
		fmt.Fprintf(&b, `<polyline points="%s" stroke="%s"/><text x="%g" y="%d" fill="%s">%s</text>`,
			points.String(), colour, width+10, 16+16*i, colour, template.HTMLEscapeString(name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // of numbers and escaped names
}

// roundUp makes an axis end at 1, 2 or 5 times a power of ten.
func roundUp(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if v <= step*power {
			return step * power
		}
	}
	return 10 * power
}

func tickLabel(v float64) string {
	if v >= 10_000 {
		return fmt.Sprintf("%gk", v/1000)
	}
	return fmt.Sprintf("%.4g", v)
}
