package main

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"xabar/chat"
	"xabar/gateway/notify"
	"xabar/persistence/queue"
)

// notifications are what tells users of messages that have not arrived. Without a
// channel nothing is scheduled.
type notifications struct {
	channels  *notify.Channels
	queue     queue.Queue // nil without a channel
	scheduler *notify.Scheduler
}

// openNotifications makes the channels that are configured, and the queue behind them.
func (a *App) openNotifications(ctx context.Context) (*notifications, error) {
	channels, err := notify.OpenChannels(ctx, notify.ChannelConfig{
		Store: a.store, Logger: a.log,
		VAPIDSubject: a.cfg.vapidSubject(), AllowPrivatePush: a.cfg.PushPrivate,
		TelegramToken: a.cfg.TelegramToken, TelegramAPIURL: a.cfg.TelegramAPIURL,
		WebhookURL: a.cfg.WebhookURL, WebhookSecret: a.cfg.WebhookSecret,
	})
	if err != nil {
		return nil, err
	}
	n := &notifications{channels: channels}
	if len(channels.Notifiers) == 0 {
		return n, nil
	}
	n.queue, err = queue.Open(ctx, a.cfg.url(), queue.Options{Channels: channels.Features(), Logger: a.log, Migrate: a.cfg.Migrate})
	if err != nil {
		channels.Close()
		return nil, fmt.Errorf("open the queue of notifications: %w", err)
	}
	return n, nil
}

// absences is who hears of messages that may not have arrived; nil: nobody.
func (n *notifications) absences(a *App) chat.Absences {
	if n.queue == nil {
		return nil
	}
	n.scheduler = notify.New(notify.Options{
		Store: a.store, Presence: a.sharing.presence, Queue: n.queue, Notifiers: n.channels.Notifiers,
		Policy: chat.NotifyPolicy{Wait: a.cfg.NotifyWait, DefaultQuiet: a.cfg.QuietHoursDefault.hours, Everybody: n.channels.Everybody},
		Logger: a.log, Metrics: newNotifyMetrics(a.registry),
	})
	return n.scheduler
}

// Run schedules, sends and hears what channels hear until ctx ends.
func (n *notifications) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.channels.Run(ctx) })
	if n.scheduler != nil {
		group.Go(func() error { return n.scheduler.Run(ctx) })
	}
	return group.Wait()
}

// Close releases what Run worked with.
func (n *notifications) Close() error {
	n.channels.Close()
	if n.queue == nil {
		return nil
	}
	return n.queue.Close()
}

// notifyMetrics counts what becomes of notifications (notify.Metrics).
type notifyMetrics struct {
	scheduled             prometheus.Counter
	suppressed            *prometheus.CounterVec
	queued, sent, retried *prometheus.CounterVec
	failed, targets       *prometheus.CounterVec
}

func newNotifyMetrics(r prometheus.Registerer) *notifyMetrics {
	byChannel := func(name, help string) *prometheus.CounterVec { return counterVec(r, name, help, "channel") }
	return &notifyMetrics{
		scheduled:  counter(r, "xabar_notifications_scheduled_total", "Waits for a message's arrival that have ended."),
		suppressed: counterVec(r, "xabar_notifications_suppressed_total", "Notifications that were not sent, by the reason.", "why"),
		queued:     byChannel("xabar_notifications_queued_total", "Notifications handed to the queue."),
		sent:       byChannel("xabar_notifications_sent_total", "Notifications that a channel has taken."),
		retried:    byChannel("xabar_notifications_retried_total", "Attempts that failed and are repeated."),
		failed:     byChannel("xabar_notifications_failed_total", "Notifications that were given up; xabar notifications list --failed shows them."),
		targets:    byChannel("xabar_notification_targets_removed_total", "Subscriptions and chats that were removed because they will never work again."),
	}
}

func (m *notifyMetrics) Scheduled(n int)           { m.scheduled.Add(float64(n)) }
func (m *notifyMetrics) Suppressed(why string)     { m.suppressed.WithLabelValues(why).Inc() }
func (m *notifyMetrics) Queued(channel string)     { m.queued.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Sent(channel string)       { m.sent.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Retried(channel string)    { m.retried.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) Failed(channel string)     { m.failed.WithLabelValues(channel).Inc() }
func (m *notifyMetrics) TargetGone(channel string) { m.targets.WithLabelValues(channel).Inc() }
