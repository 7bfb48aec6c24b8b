package main

import (
	"context"
	"fmt"

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
		Logger: a.log, Metrics: newNotifyMetrics(a.registry, n.channels.Features()), Tracer: a.traces.port(),
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
