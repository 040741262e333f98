use roxmltree::Document;

use super::*;

fn figure(chart: Chart) -> Figure {
    Figure::single("Throughput <against> loss", "1 Gbit/s & 100 ms", chart)
}

fn lines(points: &[(f64, f64)]) -> Chart {
    let axes = (Axis::log_and_zero("loss", "%"), Axis::log("throughput", "Mbit/s"));
    Chart::lines(axes.0, axes.1, vec![Line::through("haul", points.to_vec()), Line::through("TCP \"CUBIC\"", points.to_vec())])
}

fn bars(values: Vec<Option<Value>>) -> Chart {
    let groups = (0..values.len()).map(|group| format!("group {group}")).collect();
    Chart::bars(
        "mode",
        Axis::linear("share", "%"),
        Bars { groups, series: vec![BarSeries { name: "haul".into(), values, look: None }] },
    )
}

fn many() -> Figure {
    let series =
        (0..20).map(|n| Line::through(format!("flow {n}"), (0..500).map(|x| (f64::from(x), f64::from(x * n % 97)))).plain());
    let over_time = Chart::lines(Axis::linear("time", "s"), Axis::linear("rate", "Mbit/s"), series.collect()).titled("over time");
    let phase = |name: &str, from, to| Span { name: name.into(), from, to };
    let over_time = over_time.spans([phase("startup", 0.0, 200.0), phase("up", 200.0, 201.0), phase("cruise", 201.0, 499.0)]);
    let spread = Value::of([40.0, 60.0, 45.0]);
    let charts = vec![
        over_time.limit("limit", 95.0),
        bars(vec![spread, None, Value::of([7.0])]).titled("bars"),
        lines(&[(0.0, 1.0), (5.0, 900.0)]),
    ];
    Figure { title: "All of it".into(), subtitle: "with a subtitle ".repeat(30), charts, columns: 2 }
}

#[test]
fn every_kind_of_chart_is_a_picture_with_its_labels() {
    for (figure, labels) in [
        (
            figure(lines(&[(0.0, 900.0), (0.1, 3.5), (5.0, 0.02)])),
            &["loss [%]", "throughput [Mbit/s]", "haul", "TCP &quot;CUBIC&quot;"][..],
        ),
        (figure(bars(vec![Value::of([40.0, 60.0]), None])), &["mode", "share [%]", "group 0", "group 1", "50"][..]),
        (many(), &["over time", "time [s]", "flow 19", "limit", "All of it", "startup", "cruise"][..]),
    ] {
        let svg = figure.svg().expect("sound data");
        let document = Document::parse(&svg).expect("well-formed");
        let width = document.root_element().attribute("width").and_then(|width| width.parse::<f64>().ok());
        assert!(width.is_some_and(|width| width > 500.0), "{width:?}");
        for label in labels {
            assert!(svg.contains(&format!(">{label}<")), "{label} is missing");
        }
        let png = figure.png().expect("it can be rasterised");
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{} bytes", png.len());
    }
}

#[test]
fn long_names_of_groups_are_whole_and_dashed_looks_are_hollow_bars() {
    let name = "a file of 954 MiB over a path of 10.0 Gbit/s with 100 ms and 0.10 % loss";
    let values = vec![Value::of([3.0]); 8];
    let series = |name: &str, look| BarSeries { name: name.into(), values: values.clone(), look: Some(look) };
    let groups = vec![name.to_owned(); 8];
    let bars = Bars { groups, series: vec![series("haul", 0), series("haul again", 8)] };
    let svg = figure(Chart::bars("", Axis::linear("time", "s"), bars)).svg().expect("sound data");
    let document = Document::parse(&svg).expect("well-formed");
    let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
    for word in name.split(' ') {
        assert!(
            texts.iter().filter(|text| text.split(' ').any(|part| part == word)).count() >= 8,
            "{word} is cut off: {texts:?}"
        );
    }
    let paper = svg.matches(style::PAPER).count();
    assert!(paper >= 9, "one for the picture, eight for the bars: {paper}");
}

#[test]
fn markup_in_names_is_text() {
    let svg = figure(lines(&[(1.0, 1.0)])).svg().expect("sound data");
    assert!(svg.contains("Throughput &lt;against&gt; loss") && svg.contains("1 Gbit/s &amp; 100 ms"));
}

#[test]
fn one_point_and_equal_points_have_a_chart() {
    for points in [&[(1.0, 1.0)][..], &[(0.0, 5.0)], &[(2.0, 5.0), (2.0, 5.0)]] {
        figure(lines(points)).png().expect("a picture");
    }
    let flat = Chart::lines(Axis::linear("time", "s"), Axis::linear("rate", ""), vec![Line::through("a", [(0.0, 0.0)])]);
    figure(flat).png().expect("a picture");
}

#[test]
fn what_cannot_be_drawn_is_said_by_name() {
    let empty = figure(lines(&[])).svg().expect_err("nothing to draw");
    assert!(matches!(empty, PlotError::NoData { .. }) && empty.to_string().contains("Throughput"), "{empty}");
    let no_bars = figure(bars(vec![None, None])).svg().expect_err("nothing to draw");
    assert!(matches!(no_bars, PlotError::NoData { .. }), "{no_bars}");
    for nonsense in [f64::NAN, f64::INFINITY] {
        let error = figure(lines(&[(1.0, 1.0), (2.0, nonsense)])).svg().expect_err("no place for it");
        assert!(matches!(&error, PlotError::NotFinite { series, .. } if series == "haul"), "{error}");
        let error = figure(lines(&[(nonsense, 1.0)])).svg().expect_err("no place for it");
        assert!(matches!(error, PlotError::NotFinite { .. }), "{error}");
    }
    let zero = figure(lines(&[(1.0, 0.0)])).svg().expect_err("no logarithm");
    assert!(matches!(&zero, PlotError::NotPositive { axis, .. } if axis == "throughput"), "{zero}");
    let backwards = Chart { y: Axis::linear("rate", "").range(5.0, 1.0), ..lines(&[(1.0, 1.0)]) };
    let error = figure(backwards).svg().expect_err("no such axis");
    assert!(matches!(error, PlotError::EmptyAxis { .. }), "{error}");
    assert!(matches!(Figure { charts: Vec::new(), ..many() }.svg(), Err(PlotError::NoData { .. })));
}

#[test]
fn a_series_looks_the_same_in_all_charts() {
    let line = |name: &str, look| Line { look, ..Line::through(name, [(0.0, 1.0), (1.0, 2.0)]) };
    let chart = |names: &[(&str, Option<usize>)]| {
        let lines = names.iter().map(|&(name, look)| line(name, look)).collect();
        Chart::lines(Axis::linear("x", ""), Axis::linear("y", ""), lines)
    };
    let charts = vec![chart(&[("a", None), ("b", Some(0))]), chart(&[("b", None), ("c", None)])];
    let svg = Figure { title: "Looks".into(), subtitle: String::new(), charts, columns: 2 }.svg().expect("sound data");
    // Of the data; the key in the legend is thinner.
    let drawn = |colour: &str| svg.matches(&format!("stroke=\"{colour}\" stroke-width=\"2.2\"")).count();
    // b is the first look in both, a and c have what is free.
    assert_eq!((drawn("#d55e00"), drawn("#0072b2"), drawn("#009e73")), (2, 1, 1));
}
